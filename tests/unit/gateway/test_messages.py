"""What is said of a body that is no message of JSON-RPC."""

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PARSE_ERROR

from recollect_gateway.mcp_endpoint.messages import check_message


@pytest.mark.parametrize("said", [r"cut in two: \ud83d", r"\udf75 without its first half"])
def test_half_a_character_is_named_among_what_may_be_wrong(said: str) -> None:
    """An emoji that was cut in two is written so by JavaScript; whoever reads that it is no JSON looks in vain."""
    call = f'"params":{{"name":"recall","arguments":{{"query":"{said}"}}}}'
    body = f'{{"jsonrpc":"2.0","id":7,"method":"tools/call",{call}}}'
    with pytest.raises(MCPError, match=r"holds half a character \(such as \\ud83d alone\)") as told:
        check_message(body.encode())
    assert told.value.error.code == PARSE_ERROR
