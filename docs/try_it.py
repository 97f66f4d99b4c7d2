"""Recollect's whole path in a minute: write, search, remember, and recall by meaning.

While `make run` runs in one terminal, run this in another:

    .venv/bin/python docs/try_it.py            # write and find
    .venv/bin/python docs/try_it.py --again    # only find: the data is still there, even after a restart

The endpoint and the key come from RECOLLECT_MCP_URL and RECOLLECT_API_KEY or, if these are unset, from the stack that
runs on this machine. All data is in a graph of its own, `try-it`. Exits with 1 if something is not found.
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
VEHICLE = "Our vehicle stands in the garage on Elm Street"
MEMORIES: list[dict[str, Any]] = [
    {"text": VEHICLE, "about": ["Lisbon office"]},
    {"text": "The quarterly budget was approved in March"},
    {"text": "Bees make honey from nectar"},
]
QUESTION = "Where do I find an automobile for parking?"
EMBEDDED_WITHIN_SECONDS = 60


class NotFoundError(Exception):
    """Something that was written was not found."""


async def main(again: bool) -> None:
    """Write, unless `again`, and find."""
    url, key = endpoint_and_key()
    print(f"Recollect at {url}, graph {GRAPH!r}\n")
    async with connect(f"{url}/x/all", key) as client:
        if not again:
            await write(client)
        await find(client)
    print("\nAll of it was found.")


def endpoint_and_key() -> tuple[str, str]:
    """The MCP endpoint and the key, from the environment or else from the running local stack."""
    if "RECOLLECT_MCP_URL" in os.environ and "RECOLLECT_API_KEY" in os.environ:
        return os.environ["RECOLLECT_MCP_URL"].rstrip("/"), os.environ["RECOLLECT_API_KEY"]
    folder = os.environ.get("RECOLLECT_DATA_DIR") or platformdirs.user_data_path("recollect")
    state_file = Path(folder).expanduser() / "local.json"
    if not state_file.exists():
        sys.exit(
            "Recollect does not run on this machine. Start it with `make run`; if it runs with --data-dir, set "
            "RECOLLECT_DATA_DIR to that folder. To use another, set RECOLLECT_MCP_URL and RECOLLECT_API_KEY."
        )
    local = json.loads(state_file.read_text())
    return local["mcp_url"], local["api_key"]


@asynccontextmanager
async def connect(url: str, key: str) -> AsyncIterator[Client]:
    """Connect the official MCP client."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=30) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def write(client: Client) -> None:
    """Store two entities, a relation between them, and three memories."""
    await call(client, "create_entities", entities=ENTITIES)
    await call(client, "create_relations", relations=RELATIONS)
    remembered = await call(client, "remember", items=MEMORIES)
    for item, memory in zip(MEMORIES, remembered["memories"], strict=True):
        print(f"  {memory['status']}: {item['text']}")


async def find(client: Client) -> None:
    """Find everything: by a part of a name, by name, and by meaning."""
    found = await call(client, "search_nodes", query="lisbon")
    expect(ENTITIES[0]["name"], [entity["name"] for entity in found["entities"]])
    opened = await call(client, "open_nodes", names=["Ana"])
    expect(RELATIONS[0], opened["relations"])
    assert not words(QUESTION) & words(VEHICLE), "the question must share no word with the memory that it finds"
    recalled = await recall_embedded(client)
    expect(VEHICLE, [memory["text"] for memory in recalled["memories"][:1]])


async def recall_embedded(client: Client) -> Any:
    """Recall once every memory is embedded: memories are found by words at once, by meaning a moment later."""
    deadline = time.monotonic() + EMBEDDED_WITHIN_SECONDS
    while True:
        recalled = await call(client, "recall", query=QUESTION)
        if not recalled["waiting"] or time.monotonic() > deadline:
            return recalled
        print(f"  {recalled['waiting']} memories still wait to be embedded")
        await asyncio.sleep(0.5)


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool, print the call, and return its structured result."""
    print(f"{tool} {json.dumps(arguments, ensure_ascii=False)}")
    result = await client.call_tool(tool, {"graph": GRAPH, **arguments})
    if result.is_error:
        sys.exit(f"  refused: {result.content}")
    return result.structured_content


def expect(expected: Any, found: list[Any]) -> None:
    """Print the expected item; raise NotFoundError unless it was found."""
    if expected not in found:
        raise NotFoundError(f"{expected!r} is not in {found!r}")
    print(f"  found: {expected}")


def words(text: str) -> set[str]:
    """The words of a text, in lower case."""
    return set(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Recollect's whole path: write, search, remember, recall by meaning.")
    options.add_argument("--again", action="store_true", help="only find what an earlier run wrote")
    try:
        asyncio.run(main(options.parse_args().again))
    except* NotFoundError as missing:
        sys.exit(f"  NOT FOUND: {missing.exceptions[0]}")
    except* httpx2.HTTPError as failure:
        sys.exit(f"  cannot reach Recollect: {failure.exceptions[0]}")
