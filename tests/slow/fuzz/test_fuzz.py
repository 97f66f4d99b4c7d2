"""A tool answers or refuses any arguments that a model makes up, and never fails."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.server import definition
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from tests.contract.examples import EXAMPLES, Played
from tests.support.examples import examples, one_in
from tests.support.gateway import NO_AUTHORITIES, RunningGateway, rpc_answer, rpc_headers
from tests.support.timeouts import MAX_WAIT_SECONDS

pytestmark = pytest.mark.long

REFUSALS = {"invalid_input", "entity_not_found", "node_not_found", "name_taken", "cycle"}
REFUSALS |= {"graph_not_found", "graph_exists", "kind_not_allowed", "version_conflict", "job_not_found"}
PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602

ODD_TEXTS = [
    *["", " ", "Alice", "\x00", "a\x00b", "\x1f", "\x7f", "\x85", "\u2028", "\ud800", "\udfff\ud800"],
    *["\ufffe", "e\u0301", "\u202e", "\U0001f9e0" * 300, "a" * 20_000, "a" * 5_000 + " b", "x1 " * 3_000],
    *["%_\\", "'; DROP TABLE nodes; --", "$1", "{}", "a & !b | (c <-> d):*", "\\x00", "NULL", "[1]"],
]
ODD_TIMES = [
    *["0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999-23:59", "2024-06-01"],
    *["9999-12-31T23:59:59.9999999Z", "2024-02-30T00:00:00Z", "2024-06-30T23:59:60Z", "1700000000", "infinity"],
]
ODD_NUMBERS = [0, -1, -0.0, 0.1, 1e-320, 2**31, 2**53, 2**63, 2**64, 10**30, -(10**400), 1e308]
NO_NUMBERS = [float("nan"), float("inf"), float("-inf")]
ODD_VALUES: list[Any] = [None, True, [], {}, [[]], {"a": {}}, *ODD_TEXTS, *ODD_TIMES, *ODD_NUMBERS, *NO_NUMBERS]

SHARE = 8
"""Each value is tried in every eighth place, its neighbours in others; in `make soak` in all, for minutes."""

SOAK_SECONDS = 7_200
"""As long as `make soak` may try examples, of which each tool gets some hundreds."""

odd = st.sampled_from(ODD_VALUES)
anything = st.recursive(
    odd | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def anybody(gateway: RunningGateway) -> Iterator[httpx2.Client]:
    with httpx2.Client(
        base_url=gateway.url, headers=rpc_headers(), timeout=MAX_WAIT_SECONDS, verify=NO_AUTHORITIES
    ) as http:
        yield http


@pytest.fixture
def http(anybody: httpx2.Client, admin_key: str) -> httpx2.Client:
    """The client, with the key of an admin of the test's tenant: one tool is for admins only."""
    anybody.headers["Authorization"] = f"Bearer {admin_key}"
    return anybody


def call(http: httpx2.Client, tool: str, arguments: Any, played: Played | None = None) -> bool:
    """Whether the tool accepted the call; if not, it must have refused it in a form that a model can use."""
    played = played or Played()
    arguments = played.fill(arguments)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    response = http.post("/mcp/x/all", content=json.dumps(body))
    answer = rpc_answer(response.text)
    if "error" in answer:
        assert answer["error"]["code"] in (PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS), answer
        return False
    assert response.status_code == 200
    result = answer["result"]
    if result["isError"]:
        assert result["_meta"][ERROR_META]["code"] in REFUSALS, (tool, arguments, result)
        assert result["content"][0]["text"]
    played.keep(tool, result)
    return not result["isError"]


@pytest.mark.proves("rules: any-json-is-handled")
@pytest.mark.hypothesis
@pytest.mark.timeout(SOAK_SECONDS)
def test_any_json_is_answered_or_refused(http: httpx2.Client, subtests: pytest.Subtests) -> None:
    for tool in EXAMPLES:
        with subtests.test(tool):
            any_json(http, tool)()


def any_json(http: httpx2.Client, tool: str) -> Callable[[], None]:
    """A property of one tool. Its name determines the examples, of which each tool gets others."""

    def is_answered_or_refused(arguments: Any) -> None:
        call(http, tool, arguments)

    is_answered_or_refused.__name__ += f"_by_{tool}"
    return examples(8)(given(arguments=anything)(is_answered_or_refused))


@pytest.mark.proves("rules: any-json-is-handled")
@pytest.mark.parametrize(
    ("number", "value"), list(enumerate(ODD_VALUES)), ids=[ascii(value)[:30] for value in ODD_VALUES]
)
def test_one_odd_value_in_a_valid_call_is_answered_or_refused(http: httpx2.Client, number: int, value: Any) -> None:
    played = Played()
    odd_places = [(tool, path) for tool, arguments in EXAMPLES.items() for path in places(arguments)]
    for nth, (tool, path) in enumerate(odd_places, start=number):
        if nth % one_in(SHARE) == 0:
            call(http, tool, replaced(EXAMPLES[tool], path, value), played)


def test_the_valid_calls_are_accepted(http: httpx2.Client) -> None:
    """The calls into which the odd values are put are valid without them."""
    played = Played()
    taken = {tool: call(http, tool, arguments, played) for tool, arguments in EXAMPLES.items()}
    assert taken == dict.fromkeys(EXAMPLES, True)


def test_examples_give_every_argument(subtests: pytest.Subtests) -> None:
    for tool in CATALOGUE:
        with subtests.test(tool.name):
            assert given_in(EXAMPLES[tool.name]) >= named_in(definition(tool).input_schema)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place inside a JSON value."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    """The value with another one in that place."""
    if not path:
        return new
    inner = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    inner[path[0]] = replaced(inner[path[0]], path[1:], new)
    return inner if isinstance(value, dict) else list(inner.values())


def given_in(value: Any) -> set[str]:
    """Names of the fields at every place of a value, places of arrays left out: `items.text`."""
    return {".".join(key for key in path if isinstance(key, str)) for path in places(value)}


def named_in(schema: dict[str, Any], path: str = "") -> set[str]:
    """The names of the fields at every place of a schema."""
    names = {path} - {""}
    for field, inner in schema.get("properties", {}).items():
        names |= named_in(inner, f"{path}.{field}".lstrip("."))
    return names | (named_in(schema["items"], path) if "items" in schema else set())
