"""A tenant that floods: `python -m tests.benchmarks.neighbours.floods PORT KIND ENTITIES AT_ONCE`.

It reads its key from stdin and sends calls of one kind on so many connections, one after the other on each, until it is
stopped. Refusals count as answers. It is a separate process, so that its work does not delay the measurement.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx2

from tests.benchmarks.corpus import Corpus

ANSWERED = "answered"
"""The line that it prints after the first answer."""

Arguments = Callable[[Corpus, int, int], dict[str, Any]]

TOOLS: dict[str, tuple[str, Arguments]] = {
    "reads": ("read_graph", lambda _, __, ___: {"limit": 100}),
    "writes": ("remember", lambda corpus, _, __: {"items": [{"text": corpus.new_sentence()} for _ in range(20)]}),
    "walks": (
        "find_all_paths",
        lambda corpus, n, size: {
            "from": corpus.name(n % size),
            "to": corpus.name((n * 7919 + 1) % size),
            "maxDepth": 12,
            "maxPaths": 1000,
        },
    ),
    "searches": (
        "search_nodes_ranked",
        lambda corpus, n, size: {
            "query": " ".join(corpus.question((n * 16 + k) % size) for k in range(16)),
            "limit": 100,
        },
    ),
    "comparisons": ("find_duplicates", lambda _, __, ___: {"threshold": 0.65}),
    "backlog": ("remember", lambda corpus, _, __: {"items": [{"text": corpus.new_sentence()} for _ in range(100)]}),
}
"""The kinds of flood that are calls of a tool."""

ROUTES = ("exports", "imports")
KINDS = (*TOOLS, *ROUTES)


async def flood(port: int, kind: str, key: str, size: int, at_once: int) -> None:
    """Send calls, so many at once, until cancelled."""
    corpus, numbers = Corpus(), itertools.count(1)
    headers = {
        "Authorization": f"Bearer {key}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-11-25",
    }
    bounds = httpx2.Limits(max_connections=at_once)
    base = f"http://127.0.0.1:{port}"
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=120, limits=bounds) as http:

        async def send_all() -> None:
            while True:
                number = next(numbers)
                with suppress(httpx2.TransportError):  # The gateway closes what stood still for too long.
                    await _send(http, kind, corpus, number, size)
                if number <= at_once:
                    print(ANSWERED, flush=True)

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(send_all())


async def _send(http: httpx2.AsyncClient, kind: str, corpus: Corpus, number: int, size: int) -> None:
    if kind == "exports":
        async with http.stream("GET", "/v1/graphs/default/export") as answer:
            async for _ in answer.aiter_raw():
                pass
    elif kind == "imports":
        lines = (json.dumps({"type": "entity", **corpus.new_entity()}) for _ in range(500))
        media_type = {"Content-Type": "application/x-ndjson"}
        await http.post(f"/v1/graphs/imported-{number % 4}/import", content="\n".join(lines), headers=media_type)
    else:
        tool, arguments = TOOLS[kind]
        params = {"name": tool, "arguments": arguments(corpus, number, size)}
        await http.post("/mcp/x/all", json={"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})


if __name__ == "__main__":
    asyncio.run(flood(int(sys.argv[1]), sys.argv[2], sys.stdin.readline().strip(), int(sys.argv[3]), int(sys.argv[4])))
