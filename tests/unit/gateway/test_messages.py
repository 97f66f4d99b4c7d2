"""The error for a body that is not a JSON-RPC message."""

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PARSE_ERROR

from recollect_gateway.mcp_endpoint.messages import check_message


@pytest.mark.parametrize("query", [r"cut in two: \ud83d", r"\udf75 without its first half"])
def test_the_error_mentions_half_a_character_as_a_possible_cause(query: str) -> None:
    """JavaScript writes an emoji that was cut in two this way; "not JSON" alone would not explain the error."""
    call = f'"params":{{"name":"recall","arguments":{{"query":"{query}"}}}}'
    body = f'{{"jsonrpc":"2.0","id":7,"method":"tools/call",{call}}}'
    with pytest.raises(MCPError, match=r"holds half a character \(such as \\ud83d alone\)") as error:
        check_message(body.encode())
    assert error.value.error.code == PARSE_ERROR
