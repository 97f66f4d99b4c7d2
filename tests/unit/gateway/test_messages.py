"""The check of a body: whether it is one JSON-RPC message."""

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PARSE_ERROR

from recollect_gateway.mcp_endpoint.transport.messages import checked_message


@pytest.mark.parametrize("query", [r"cut in two: \ud83d", r"\udf75 without its first half", r"\uD83D\uD83D\uDF75"])
def test_half_a_character_is_left_to_the_reader_of_the_argument(query: str) -> None:
    """JavaScript writes an emoji that was cut in two this way. The reader refuses NUL, and names the argument."""
    expected = (
        query.replace(r"\ud83d", r"\u0000").replace(r"\udf75", r"\u0000").replace(r"\uD83D\uD83D", r"\u0000\uD83D")
    )
    assert checked_message(call(query)) == call(expected)


@pytest.mark.parametrize("query", [r"\ud83d\udf75", r"no escape: \\ud83d", r"\\\\ud83d \" \n \u00e9", "é 🍵"])
def test_no_other_message_is_changed(query: str) -> None:
    assert checked_message(call(query)) == call(query)


@pytest.mark.parametrize("query", ['\\ud83d"', r"\ud83", r"\x \ud83d"])
def test_what_is_no_json_otherwise_is_refused(query: str) -> None:
    with pytest.raises(MCPError) as error:
        checked_message(call(query))
    assert error.value.error.code == PARSE_ERROR


def call(query: str) -> bytes:
    params = f'"params":{{"name":"recall","arguments":{{"query":"{query}"}}}}'
    return f'{{"jsonrpc":"2.0","id":7,"method":"tools/call",{params}}}'.encode()
