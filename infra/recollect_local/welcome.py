"""The text that is printed once the stack is ready: its addresses, and lines to paste into an MCP client."""

import json
from typing import Any

from recollect_local.address import Endpoint

_LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def welcome(endpoint: Endpoint) -> str:
    """The lines for Claude Code, Cursor, VS Code and curl, each ready to paste."""
    server = {"url": endpoint.mcp_url, "headers": {"Authorization": f"Bearer {endpoint.api_key}"}}
    return f"""
Recollect is ready.

  MCP endpoint    {endpoint.mcp_url}
  Management API  {endpoint.management_url}
  API key         {endpoint.api_key}   (tenant {endpoint.tenant})

Claude Code:

claude mcp add --transport http recollect {endpoint.mcp_url} --header "Authorization: Bearer {endpoint.api_key}"

Cursor, in .cursor/mcp.json:

{_json({"mcpServers": {"recollect": server}})}

VS Code, in .vscode/mcp.json:

{_json({"servers": {"recollect": {"type": "http", **server}}})}

curl:

{_curl(endpoint)}

Press Ctrl-C to stop it. The data and the key are kept.
"""


def _curl(endpoint: Endpoint) -> str:
    headers = {
        "Authorization": f"Bearer {endpoint.api_key}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    lines = [f"curl -sS {endpoint.mcp_url}", *(f"-H '{name}: {value}'" for name, value in headers.items())]
    return " \\\n  ".join([*lines, f"-d '{json.dumps(_LIST_TOOLS)}'"])


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2)
