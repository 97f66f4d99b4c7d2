"""Finds the calls for which a known caller is not enough: those that need a wider token, or an admin looked up anew.

Step-up: the client's token is too narrow for a tool, but the person behind it may grant the missing scope. The
specification asks for HTTP 403 with a challenge then, before anything else of the request is looked at. Tools that an
API key does not reach stay unknown to it.
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
    """The parts of a message that say which tool it calls."""

    method: Any = None
    params: _Params | None = None


def missing_scope(request: McpRequest, message: bytes, tools: Mapping[str, ToolSpec]) -> Scope | None:
    """The scope that a call needs, the token lacks and the person's role includes; None where no scope is missing."""
    caller = request.sender
    if not isinstance(caller, Caller) or caller.role is None or ROLE_SCOPES[caller.role] <= caller.scopes:
        return None
    tool = _called_tool(message, tools)
    if tool is None or not request.selection.may_offer(tool, caller):
        return None
    is_grantable = tool.scope in ROLE_SCOPES[caller.role] and not caller.may(tool.scope)
    return tool.scope if is_grantable else None


def needs_admin(caller: Caller, message: bytes, tools: Mapping[str, ToolSpec]) -> bool:
    """Whether an admin calls a tool that only admins may call."""
    if not caller.may(Scope.TENANT_ADMIN):
        return False
    tool = _called_tool(message, tools)
    return tool is not None and tool.scope is Scope.TENANT_ADMIN


def _called_tool(message: bytes, tools: Mapping[str, ToolSpec]) -> ToolSpec | None:
    try:
        call = msgspec.json.decode(message, type=_Call)
    except (msgspec.MsgspecError, RecursionError):
        return None
    name = call.params.name if call.method == "tools/call" and call.params else None
    return tools.get(name) if isinstance(name, str) else None
