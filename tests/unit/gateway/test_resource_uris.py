"""The URIs of resources: each that is written can be parsed, and other texts are not accepted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import (
    MAX_LENGTH,
    ResourceAddress,
    parse_address,
)

TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=30)
CHOICES = st.lists(TEXT, max_size=3).map(tuple)
PARTS = st.builds(ResourceAddress, graph=TEXT, kinds=CHOICES, tags=CHOICES)
NODES = st.builds(ResourceAddress, graph=TEXT, node=TEXT)


@given(st.one_of(st.just(ResourceAddress()), PARTS, NODES))
def test_a_written_uri_parses_to_the_same_address(address: ResourceAddress) -> None:
    if len(address.uri) <= MAX_LENGTH:
        assert parse_address(address.uri) == address


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("recollect://graphs", ResourceAddress()),
        ("recollect://graphs/work", ResourceAddress("work")),
        ("recollect://graphs/work/nodes/Ann%20Lee", ResourceAddress("work", "Ann Lee")),
        ("recollect://graphs/work/nodes/a%2Fb", ResourceAddress("work", "a/b")),
        ("recollect://graphs/work/nodes/a/b", ResourceAddress("work", "a/b")),
        ("recollect://graphs/work?kind=person&tag=a&tag=b", ResourceAddress("work", None, ("person",), ("a", "b"))),
    ],
)
def test_a_valid_uri_is_parsed(uri: str, expected: ResourceAddress) -> None:
    assert parse_address(uri) == expected


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "recollect://graphs/",
        "recollect://graphs/work/",
        "recollect://graphs/work/nodes",
        "recollect://graphs/work/nodes/",
        "recollect://graphs/work/nodes/a?kind=person",
        "recollect://graphs/work?colour=red",
        "recollect://graphs/work?kind",
        "recollect://graphs/work?kind=%00",
        "recollect://graphs/work#part",
        "recollect://graphs/%zz",
        "recollect://graphs/%ff",
        "recollect://graphs/work/nodes/%00",
        "recollect://graphs/work?" + "&".join(["kind=a"] * 51),
        "recollect://graphs/" + "a" * MAX_LENGTH,
        "RECOLLECT://graphs",
        "memory://knowledge-graph",
    ],
)
def test_an_invalid_uri_is_not_parsed(uri: str) -> None:
    assert parse_address(uri) is None
