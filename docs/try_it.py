"""Recollect's whole path in a minute: write, search, remember, and recall by meaning.

With `make run` in one terminal, in another:

    .venv/bin/python docs/try_it.py            # write and find
    .venv/bin/python docs/try_it.py --again    # find only: what was written is still there, after a restart too

The endpoint and the key come from RECOLLECT_MCP_URL and RECOLLECT_API_KEY, else from the stack that runs on this
machine. Everything is kept in a graph of its own, `try-it`. Exits 1 if something is not found.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import platformdirs
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

GRAPH = "try-it"
ENTITIES: list[dict[str, Any]] = [
    {"name": "Ana", "entityType": "person", "observations": ["Ana leads the Lisbon office"]},
    {"name": "Lisbon office", "entityType": "place", "observations": ["Opened in 2019"]},
]
RELATIONS = [{"from": "Ana", "to": "Lisbon office", "relationType": "leads"}]
SOUGHT = "Our vehicle stands in the garage on Elm Street"
MEMORIES: list[dict[str, Any]] = [
    {"text": SOUGHT, "about": ["Lisbon office"]},
    {"text": "The quarterly budget was approved in March"},
    {"text": "Bees make honey from nectar"},
]
QUESTION = "Where do I find an automobile for parking?"
EMBEDDED_WITHIN_SECONDS = 60


class NotFoundAgain(Exception):
    """Something that was written did not come back."""


async def main(again: bool) -> None:
    """Write, unless only looking again, and find."""
    url, key = where()
    print(f"Recollect at {url}, graph {GRAPH!r}\n")
    async with connected(f"{url}/x/all", key) as client:
        if not again:
            await write(client)
        await find(client)
    print("\nAll of it was found.")


def where() -> tuple[str, str]:
    """The MCP endpoint and the key: from the environment, else from the running local stack."""
    if "RECOLLECT_MCP_URL" in os.environ and "RECOLLECT_API_KEY" in os.environ:
        return os.environ["RECOLLECT_MCP_URL"].rstrip("/"), os.environ["RECOLLECT_API_KEY"]
    folder = os.environ.get("RECOLLECT_DATA_DIR") or platformdirs.user_data_path("recollect")
    running = Path(folder).expanduser() / "local.json"
    if not running.exists():
        sys.exit(
            "Recollect does not run on this machine. Start `make run` (one with a --data-dir is found by "
            "RECOLLECT_DATA_DIR), or set RECOLLECT_MCP_URL and RECOLLECT_API_KEY."
        )
    local = json.loads(running.read_text())
    return local["mcp_url"], local["api_key"]


@asynccontextmanager
async def connected(url: str, key: str) -> AsyncIterator[Client]:
    """The official MCP client, connected."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def write(client: Client) -> None:
    """Keep two entities, how they relate, and three memories."""
    await call(client, "create_entities", entities=ENTITIES)
    await call(client, "create_relations", relations=RELATIONS)
    remembered = await call(client, "remember", items=MEMORIES)
    for item, kept in zip(MEMORIES, remembered["memories"], strict=True):
        print(f"  {kept['status']}: {item['text']}")


async def find(client: Client) -> None:
    """Find all of it: by a piece of a name, by name, and by meaning."""
    found = await call(client, "search_nodes", query="lisbon")
    expect(ENTITIES[0]["name"], [entity["name"] for entity in found["entities"]])
    opened = await call(client, "open_nodes", names=["Ana"])
    expect(RELATIONS[0], opened["relations"])
    assert not words(QUESTION) & words(SOUGHT), "the question must share no word with what it finds"
    recalled = await recall_embedded(client)
    expect(SOUGHT, [memory["text"] for memory in recalled["memories"][:1]])


async def recall_embedded(client: Client) -> Any:
    """Recall by meaning, once every memory is embedded: words are found at once, meanings a moment later."""
    give_up = time.monotonic() + EMBEDDED_WITHIN_SECONDS
    while True:
        recalled = await call(client, "recall", query=QUESTION)
        if not recalled["waiting"] or time.monotonic() > give_up:
            return recalled
        print(f"  {recalled['waiting']} memories still wait to be embedded")
        await asyncio.sleep(0.5)


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool, say so, and give its structured answer."""
    print(f"{tool} {json.dumps(arguments, ensure_ascii=False)}")
    result = await client.call_tool(tool, {"graph": GRAPH, **arguments})
    if result.is_error:
        sys.exit(f"  refused: {result.content}")
    return result.structured_content


def expect(wanted: Any, found: list[Any]) -> None:
    """Say what was found; raise NotFoundAgain unless the wanted thing is there."""
    if wanted not in found:
        raise NotFoundAgain(f"{wanted!r} is not in {found!r}")
    print(f"  found: {wanted}")


def words(text: str) -> set[str]:
    """The words of a text, in small letters."""
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Recollect's whole path: write, search, remember, recall by meaning.")
    options.add_argument("--again", action="store_true", help="find only what an earlier run wrote")
    try:
        asyncio.run(main(options.parse_args().again))
    except* NotFoundAgain as missing:
        sys.exit(f"  NOT FOUND: {missing.exceptions[0]}")
    except* httpx2.HTTPError as failure:
        sys.exit(f"  cannot reach Recollect: {failure.exceptions[0]}")
