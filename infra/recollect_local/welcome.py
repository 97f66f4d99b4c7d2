"""The text that is printed once the stack is ready: its addresses, and lines to paste into an MCP client."""

import json
from typing import Any

from recollect_local.address import Endpoint

_LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
_VS_CODE_KEY = {"type": "promptString", "id": "recollect-key", "description": "Key for Recollect", "password": True}


def welcome(endpoint: Endpoint) -> str:
    """The lines for Claude Code, Cursor, VS Code and curl, each ready to paste.

    No file that a project shares has the key in it: clients read it from the environment, or ask for it.
    """
    by_input = _server(endpoint, "${input:recollect-key}")
    return f"""
Recollect is ready.

  MCP endpoint    {endpoint.mcp_url}
  Management API  {endpoint.management_url}
  Tenant          {endpoint.tenant}

The key for agents, which reads and writes memory. In the shell in which you start a client:

export RECOLLECT_API_KEY={endpoint.api_key}

Claude Code:

claude mcp add --transport http recollect {endpoint.mcp_url} --header "Authorization: Bearer $RECOLLECT_API_KEY"

Cursor, in .cursor/mcp.json:

{_json({"mcpServers": {"recollect": _server(endpoint, "${env:RECOLLECT_API_KEY}")}})}

VS Code, in .vscode/mcp.json. It asks for the key:

{_json({"inputs": [_VS_CODE_KEY], "servers": {"recollect": {"type": "http", **by_input}}})}

curl:

{_curl(endpoint)}

The key for administration, which also deletes graphs, makes keys and invites people. Give it to no agent:

  {endpoint.admin_key}

Press Ctrl-C to stop it. The data and the keys are kept.
"""


def _server(endpoint: Endpoint, key: str) -> dict[str, Any]:
    return {"url": endpoint.mcp_url, "headers": {"Authorization": f"Bearer {key}"}}


def _curl(endpoint: Endpoint) -> str:
    headers = {
        "Authorization": "Bearer $RECOLLECT_API_KEY",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    lines = [f"curl -sS {endpoint.mcp_url}", *(f'-H "{name}: {value}"' for name, value in headers.items())]
    return " \\\n  ".join([*lines, f"-d '{json.dumps(_LIST_TOOLS)}'"])


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2)
