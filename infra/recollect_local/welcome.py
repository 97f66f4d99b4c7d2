"""What is printed once the stack is ready, and on request: how clients and people connect to it."""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

from recollect_local.address import Endpoint

_RECALL = {"query": "What do you know about me?"}
_VS_CODE_KEY = {"type": "promptString", "id": "recollect-key", "description": "Key for Recollect", "password": True}


def welcome(endpoint: Endpoint, *, data_dir: Path | None = None) -> str:
    """The address, the key for agents, the line for Claude Code, and where the rest is.

    `data_dir`: the folder, where other commands have to be told of it.
    """
    folder = f"\nexport RECOLLECT_DATA_DIR={shlex.quote(str(data_dir))}" if data_dir else ""
    command = f"{_program()} local"
    return f"""
Recollect is ready: {_base(endpoint)}
Open it in a browser to look into the memory: one click signs in as its owner.

To connect Claude Code, in another terminal:

{_export(endpoint)}{folder}
{_claude_code(endpoint)}

Other clients, curl, and the key for administration: {command} --clients
An account for yourself, as the owner:               {command} --invite you@example.com

Press Ctrl-C to stop it. The data and the keys are kept.
"""


def clients_text(endpoint: Endpoint) -> str:
    """The lines for Claude Code, Cursor, VS Code, curl and people who administer it, each ready to paste.

    No file that a project shares has the key in it: clients read it from the environment, or ask for it.
    """
    by_input = _server(endpoint, "${input:recollect-key}")
    return f"""
  MCP endpoint    {endpoint.mcp_url}
  Management API  {endpoint.management_url}, described at {endpoint.management_url}/docs
  Tenant          {endpoint.tenant}

The key for agents, which reads and writes memory. In the shell in which you start a client:

{_export(endpoint)}

Claude Code:

{_claude_code(endpoint)}

Cursor, in .cursor/mcp.json:

{_json({"mcpServers": {"recollect": _server(endpoint, "${env:RECOLLECT_API_KEY}")}})}

VS Code, in .vscode/mcp.json. It asks for the key:

{_json({"inputs": [_VS_CODE_KEY], "servers": {"recollect": {"type": "http", **by_input}}})}

Others: docs/clients.md. curl:

{_curl(endpoint)}

The key for administration, which also deletes graphs, makes keys and invites people. Give it to no agent:

  {endpoint.admin_key}
"""


def _base(endpoint: Endpoint) -> str:
    return endpoint.mcp_url.removesuffix("/mcp")


def _program() -> str:
    """How this program was called: by its name where the shell finds it, else by its path."""
    called = sys.argv[0]
    if not called.endswith("recollect"):
        return "recollect"
    return "recollect" if shutil.which("recollect") == called else called


def _export(endpoint: Endpoint) -> str:
    return f"export RECOLLECT_API_KEY={endpoint.api_key}"


def _claude_code(endpoint: Endpoint) -> str:
    header = '--header "Authorization: Bearer $RECOLLECT_API_KEY"'
    return f"claude mcp add --transport http recollect {endpoint.mcp_url} {header}"


def _server(endpoint: Endpoint, key: str) -> dict[str, Any]:
    return {"url": endpoint.mcp_url, "headers": {"Authorization": f"Bearer {key}"}}


def _curl(endpoint: Endpoint) -> str:
    headers = {"Authorization": "Bearer $RECOLLECT_API_KEY", "Content-Type": "application/json"}
    address = f"{endpoint.management_url}/graphs/default/recall"
    options = [f'-H "{name}: {value}"' for name, value in headers.items()]
    return " \\\n  ".join([f"curl --fail-with-body -sS {address}", *options, f"-d '{json.dumps(_RECALL)}'"])


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2)
