"""The call behind a page, as code to paste: of MCP, of a shell, and of Python."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from recollect_console.clients import VARIABLE


def recall_as_code(address: str, graph: str, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A recall of a graph with these arguments: pairs of a language and its lines. No line has a key."""
    route = f"{address}/v1/graphs/{graph}/recall"
    return [
        ("MCP", _mcp(graph, arguments)),
        ("curl", _curl(route, arguments)),
        ("Python", _python(route, arguments)),
    ]


def _mcp(graph: str, arguments: Mapping[str, Any]) -> str:
    params = {"name": "recall", "arguments": {**arguments, "graph": graph}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(call, indent=2, ensure_ascii=False)


def _curl(route: str, arguments: Mapping[str, Any]) -> str:
    lines = [
        f"curl --fail-with-body -sS {shlex.quote(route)}",
        f'-H "Authorization: Bearer ${VARIABLE}"',
        "-H 'Content-Type: application/json'",
        f"-d {shlex.quote(json.dumps(arguments, ensure_ascii=False))}",
    ]
    return " \\\n  ".join(lines)


def _python(route: str, arguments: Mapping[str, Any]) -> str:
    return f"""import json, os, urllib.request

request = urllib.request.Request(
    {route!r},
    data=json.dumps({dict(arguments)!r}).encode(),
    headers={{"Authorization": f"Bearer {{os.environ[{VARIABLE!r}]}}", "Content-Type": "application/json"}},
)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer)["memories"])"""
