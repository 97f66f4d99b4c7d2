"""What to paste into each client to connect it: by signing in or, with a key, by the key."""

import json
from dataclasses import dataclass

VARIABLE = "RECOLLECT_API_KEY"
"""The variable of the environment from which clients read the key."""


@dataclass(frozen=True, slots=True)
class ClientCard:
    """A client: its name, where the lines go, and the lines."""

    id: str
    name: str
    where: str
    lines: str


def client_cards(address: str, *, by_key: bool = False) -> list[ClientCard]:
    """The cards of clients for an MCP endpoint: they let a person sign in, or (`by_key`) read a key from a variable.

    No line has the key itself, since projects share such files.
    """
    return [
        ClientCard("claude-code", "Claude Code", "In a terminal", _claude_code(address, by_key=by_key)),
        ClientCard(
            "cursor",
            "Cursor",
            ".cursor/mcp.json",
            _json({"mcpServers": {"recollect": {"url": address, **_headers(f"${{env:{VARIABLE}}}", by_key)}}}),
        ),
        ClientCard(
            "vs-code",
            "VS Code",
            ".vscode/mcp.json",
            _json(
                {"servers": {"recollect": {"type": "http", "url": address, **_headers(f"${{env:{VARIABLE}}}", by_key)}}}
            ),
        ),
        ClientCard("codex", "Codex", "~/.codex/config.toml", _codex(address, by_key=by_key)),
        ClientCard(
            "gemini-cli",
            "Gemini CLI",
            ".gemini/settings.json",
            _json({"mcpServers": {"recollect": {"httpUrl": address, **_headers(f"${VARIABLE}", by_key)}}}),
        ),
        ClientCard("other", "Claude, ChatGPT and others", "As the address of a custom connector", address),
    ]


def export_line(key: str) -> str:
    """The line for the shell in which a client starts that reads the key from its variable."""
    return f"export {VARIABLE}={key}"


def _headers(key: str, by_key: bool) -> dict[str, object]:
    return {"headers": {"Authorization": f"Bearer {key}"}} if by_key else {}


def _claude_code(address: str, *, by_key: bool) -> str:
    option = f' --header "Authorization: Bearer ${VARIABLE}"' if by_key else ""
    return f"claude mcp add --transport http recollect {address}{option}"


def _codex(address: str, *, by_key: bool) -> str:
    option = f'\nbearer_token_env_var = "{VARIABLE}"' if by_key else ""
    return f'[mcp_servers.recollect]\nurl = "{address}"{option}'


def _json(value: object) -> str:
    return json.dumps(value, indent=2)
