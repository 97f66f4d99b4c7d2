"""What a call needs beyond a known caller: step-up, and to be sure of who calls.

Step-up is for a tool that a client's token is too narrow for, and that its person may let it call.

The specification asks for HTTP 403 with a challenge then, before anything else of the request is looked at. Tools that
an API key does not reach stay unknown to it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from recollect.caller import ROLE_SCOPES, Caller, Scope
from recollect_gateway.mcp_endpoint.request import McpRequest
from recollect_gateway.mcp_endpoint.tool import ToolSpec


class _Params(Struct):
    name: Any = None


class _Call(Struct):
    """What of a message tells which tool it calls."""

    method: Any = None
    params: _Params | None = None


def missing_scope(request: McpRequest, message: bytes, tools: Mapping[str, ToolSpec]) -> Scope | None:
    """The scope that a call needs, the token lacks and the person's role holds; None where there is none."""
    caller = request.sender
    if not isinstance(caller, Caller) or caller.role is None or ROLE_SCOPES[caller.role] <= caller.scopes:
        return None
    tool = _called(message, tools)
    if tool is None or not request.selection.reaches(tool, caller):
        return None
    grantable = tool.scope in ROLE_SCOPES[caller.role] and not caller.may(tool.scope)
    return tool.scope if grantable else None


def needs_admin(caller: Caller, message: bytes, tools: Mapping[str, ToolSpec]) -> bool:
    """Whether somebody calls a tool that only an admin may."""
    if not caller.may(Scope.TENANT_ADMIN):
        return False
    tool = _called(message, tools)
    return tool is not None and tool.scope is Scope.TENANT_ADMIN


def _called(message: bytes, tools: Mapping[str, ToolSpec]) -> ToolSpec | None:
    try:
        call = msgspec.json.decode(message, type=_Call)
    except (msgspec.MsgspecError, RecursionError):
        return None
    named = call.params.name if call.method == "tools/call" and call.params else None
    return tools.get(named) if isinstance(named, str) else None
