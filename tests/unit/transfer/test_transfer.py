"""The official memory server's file, line by line."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.errors import InvalidInput, TooLarge
from recollect.fairness.computing import finish
from recollect.graph.entities.model import NewEntity
from recollect.graph.relations.model import NewRelation
from recollect.text.visible import is_visible
from recollect.transfer.batches import read_items, read_small
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.formats.jsonl import LineItem, read_line, write_line
from recollect.transfer.model import (
    MAX_KIND,
    MAX_LINES,
    MAX_NAME,
    MAX_OBSERVATIONS,
    MAX_RELATION_TYPE,
    UnreadableLine,
)
from recollect.transfer.records import MAX_CONTENT, EntityRecord, RelationRecord
from recollect_cli.gateway import GatewayAddress, find_address

FIXTURES = Path(__file__).parents[2] / "fixtures"
BROKEN_NUMBERS = [2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 21]
"""The broken lines of memory_broken.jsonl."""

characters = st.characters(exclude_characters="\0", categories=("L", "M", "N", "P", "S", "Z", "Cc", "Cf", "Co", "Cn"))
odd = st.one_of(
    characters, st.sampled_from('"\\/\b\f\n\r\t\x01\x1f\x7f\x80\x85\u00a0\u2028\u2029\u202e\ufeff\ufffe𝄞👩‍👧')
)
names = st.text(odd, min_size=1, max_size=40).filter(is_visible)
entities = st.builds(
    NewEntity,
    name=names,
    kind=st.none() | names,
    observations=st.lists(st.text(odd, max_size=60), max_size=4, unique=True).map(tuple),
)
edges = st.builds(NewRelation, source=names, target=names, type=names)
items: st.SearchStrategy[LineItem] = st.one_of(entities, edges)

ENTITY = {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["writes"]}
RELATION = {"type": "relation", "from": "Ada", "to": "Babbage", "relationType": "knows"}


class BrokenLine(NamedTuple):
    """A line that cannot be imported, and why."""

    number: int
    reason: str


def read_file(raw: bytes) -> tuple[list[tuple[int, LineItem]], list[BrokenLine]]:
    """The items of a file and its broken lines, each with its number."""
    sound: list[tuple[int, LineItem]] = []
    broken = []
    for found in read_items("jsonl", [raw]):
        line, _, path = found.where.removeprefix("line ").partition(".")
        if isinstance(found, ParsedRecord):
            sound.append((int(line), item_of(found.record)))
        else:
            broken.append(BrokenLine(int(line), f"{path}: {found.reason}" if path else found.reason))
    return sound, broken


def item_of(record: object) -> LineItem:
    if isinstance(record, RelationRecord):
        return NewRelation(str(record.from_), str(record.to), record.relation_type)
    assert isinstance(record, EntityRecord)
    return NewEntity(record.name, record.entity_type or None, tuple(record.observations))


@given(item=items)
@example(item=NewEntity("".join(map(chr, range(1, 512)))))
@example(item=NewEntity("a", observations=("\x85", "\u2028", "\r\n", "", " ")))
def test_a_written_line_is_read_as_the_same_item(item: LineItem) -> None:
    line = write_line(item)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert read_line(line) == item
    assert write_line(read_line(line)) == line


@given(item=items)
def test_a_line_is_plain_json(item: LineItem) -> None:
    parsed = json.loads(write_line(item))
    if isinstance(item, NewEntity):
        observations = list(item.observations)
        assert parsed == {**ENTITY, "name": item.name, "entityType": item.kind or "", "observations": observations}
    else:
        assert parsed == {**RELATION, "from": item.source, "to": item.target, "relationType": item.type}


@given(written=st.lists(items, max_size=8))
def test_a_file_holds_its_lines_in_order(written: list[LineItem]) -> None:
    raw = b"\xef\xbb\xbf" + b"\r\n".join(write_line(item) for item in written)
    assert read_file(raw) == ([(1 + 2 * place, item) for place, item in enumerate(written)], [])


@given(raw=st.binary(max_size=200) | st.text(st.sampled_from('{}[]":,\\u0dtypeni1 '), max_size=60).map(str.encode))
def test_the_reader_handles_any_bytes(raw: bytes) -> None:
    with suppress(InvalidInput):  # it begins as what is compressed does
        sound, broken = read_file(raw)
        assert all(0 < len(line.reason) < 200 for line in broken)
        assert [read_line(write_line(item)) for _, item in sound] == [item for _, item in sound]


def test_the_official_file_is_written_back_unchanged() -> None:
    """The fixture was written by JSON.stringify."""
    raw = (FIXTURES / "memory.jsonl").read_bytes()
    items_of_file = [item for _, item in read_file(raw)[0]]
    assert b"".join(map(write_line, items_of_file)) == raw + b"\n"
    assert [type(item) for item in items_of_file] == [NewEntity] * 8 + [NewRelation] * 7


def test_broken_lines_are_reported_by_number_and_the_rest_is_read() -> None:
    """An observation that cannot be stored does not cost its entity."""
    raw = (FIXTURES / "memory_broken.jsonl").read_bytes()
    sound, broken = read_file(raw)
    assert [line.number for line in broken] == BROKEN_NUMBERS
    assert sound == [
        (1, NewEntity("Sound one", "thing", ("first",))),
        (8, NewEntity("Mixed", "thing", ("fine",))),
        (9, NewEntity("NUL", "thing", ("fine",))),
        (13, NewEntity("Long text", "thing")),
        (19, NewRelation("Sound one", "Sound two", "likes")),
        (22, NewEntity("Sound two", "thing", ("second",))),
    ]


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"\xc3", b"\0"])
def test_a_line_that_is_not_utf_8_does_not_affect_others(bad: bytes) -> None:
    raw = write_line(NewEntity("é")) + b'{"type":"entity","name":"a' + bad + b'"}\n' + write_line(NewEntity("ü"))
    sound, [broken] = read_file(raw)
    assert sound == [(1, NewEntity("é")), (3, NewEntity("ü"))]
    assert broken.number == 2
    assert broken.reason.startswith("not UTF-8" if bad != b"\0" else "not JSON")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"type":', "not JSON: Input data was truncated"),
        (b"nonsense", "not JSON: invalid character (byte 4)"),
        (b"7", "Expected `object`, got `int`"),
        (b'{"type":"entity","name":"\xff"}', "not UTF-8"),
        # Python 3.14 measures the stack instead of counting levels, and reads this one to its end.
        (b'{"a":' * 100_000, ("nested too deeply", "not JSON: Input data was truncated")),
        (b'{"type":"\x1b[2J"}', "not JSON: invalid character (byte 9)"),
        (b'{"type":"\\u001b[2Jsecret"}', "type: neither `entity` nor `relation`"),
        (b'{"type":"x - at `$.secret"}', "type: neither `entity` nor `relation`"),
        (b'{"type":null}', "type: neither `entity` nor `relation`"),
        (b"{}", "Object missing required field `type`"),
        (
            b'{"type":"entity","name":"a\\udc00","entityType":"","observations":[]}',
            "not JSON: invalid utf-16 surrogate",
        ),
        (
            b'{"type":"entity","name":"a\\ud83d","entityType":"","observations":[]}',
            "not JSON: unexpected end of escaped",
        ),
    ],
)
def test_a_broken_line_is_refused_with_a_reason(raw: bytes, reason: str | tuple[str, ...]) -> None:
    with pytest.raises(UnreadableLine) as refused:
        read_line(raw)
    assert refused.value.reason.startswith(reason)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({**ENTITY, "name": 5}, "name: Expected `str`, got `int`"),
        ({**ENTITY, "name": ""}, "name: Expected `str` of length >= 1"),
        ({**ENTITY, "name": "n" * (MAX_NAME + 1)}, "name: Expected `str` of length <= 512"),
        ({**ENTITY, "entityType": None}, "entityType: Expected `str`, got `null`"),
        ({**ENTITY, "entityType": "k" * (MAX_KIND + 1)}, "entityType: Expected `str` of length <= 256"),
        ({**ENTITY, "observations": "one"}, "observations: Expected `array`, got `str`"),
        ({**ENTITY, "observations": ["a", {}]}, "observations[1]: Expected `str`, got `object`"),
        (
            {**ENTITY, "observations": ["a", "t" * (MAX_CONTENT + 1)]},
            "observations[1]: Expected `str` of length <= 100000",
        ),
        ({**ENTITY, "observations": ["a", "\0"]}, "observations[1]: holds the character NUL, which cannot be stored"),
        ({**ENTITY, "name": "a\0"}, "name: holds the character NUL, which cannot be stored"),
        ({**ENTITY, "entityType": "\0"}, "entityType: holds the character NUL, which cannot be stored"),
        ({"type": "entity", "name": "a", "entityType": ""}, "Object missing required field `observations`"),
        ({**RELATION, "from": ""}, "from: Expected `str` of length >= 1"),
        ({**RELATION, "to": "a\0"}, "to: holds the character NUL, which cannot be stored"),
        ({**RELATION, "relationType": "r" * (MAX_RELATION_TYPE + 1)}, "relationType: Expected `str` of length <= 256"),
        ({**RELATION, "relationType": ""}, "relationType: Expected `str` of length >= 1"),
    ],
)
def test_an_invalid_field_is_refused_with_a_reason(line: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnreadableLine) as refused:
        read_line(json.dumps(line).encode())
    assert refused.value.reason == reason


def test_the_length_of_texts_is_counted_in_characters() -> None:
    texts = ("🗼" * MAX_CONTENT,)
    assert read_line(write_line(NewEntity("👩" * MAX_NAME, "é" * MAX_KIND, texts))).observations == texts  # type: ignore[union-attr]


def test_a_request_is_bounded_in_lines_and_observations() -> None:
    def read(raw: bytes) -> int:
        return len(finish(read_small("jsonl", [raw], max_items=MAX_LINES, max_observations=MAX_OBSERVATIONS))[0])

    line = write_line(NewRelation("a", "b", "c"))
    assert read(line * MAX_LINES) == MAX_LINES
    with pytest.raises(TooLarge):
        read(line * (MAX_LINES + 1))
    many = tuple(str(number) for number in range(MAX_OBSERVATIONS))
    assert read(write_line(NewEntity("a", None, many))) == 1
    with pytest.raises(TooLarge):
        read(write_line(NewEntity("a", None, many)) + write_line(NewEntity("b", None, ("one",))))


@pytest.mark.parametrize("url", ["https://memory.test", "https://memory.test/"])
@pytest.mark.parametrize("suffix", ["", "/mcp", "/v1", "/v1/"])
def test_any_address_of_the_gateway_is_accepted(url: str, suffix: str) -> None:
    found = find_address(url.removesuffix("/") + suffix, "key")
    assert found == GatewayAddress("https://memory.test/v1", "https://memory.test/mcp", "key")


@pytest.mark.parametrize("path", ["/mcp/x/memory", "/t/acme/mcp", "/t/acme/mcp/x/memory"])
def test_an_address_keeps_its_tenant_and_its_toolset(path: str) -> None:
    assert find_address(f"https://memory.test{path}", "key").mcp_url == f"https://memory.test{path}"


@pytest.mark.parametrize("url", ["memory.test", "localhost:8787", "ftp://memory.test"])
def test_a_malformed_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="is not the URL of a gateway"):
        find_address(url, "key")
