"""An entity with more relations than a reply holds: reads tell the oldest of them, and what tells the others."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from mcp import Client

from recollect.caller import Caller
from recollect.graph.relations import subgraphs
from recollect.settings import Settings
from tests.support.gateway import NewApiKey, RunningGateway, answer, in_one_task, serving, texts_of

MAX_REPLY_BYTES = 64_000
COUNT = 300
"""Relations of the hub, which take 200 kB by the names of their ends alone."""

HUB = "Hub " + "h" * 200
FAR = [f"{number:03} " + "f" * 450 for number in range(COUNT)]
READS: dict[str, tuple[dict[str, Any], str]] = {
    "open_nodes": ({"names": [HUB]}, "relations"),
    "search_nodes": ({"query": "Hub", "limit": 10}, "relations"),
    "read_graph": ({"limit": 10}, "relations"),
    "get_neighbors": ({"name": HUB, "limit": 1000}, "relations"),
    "extract_subgraph": ({"names": [HUB], "limit": 1000}, "relations"),
    "explore": ({"start": HUB, "max_nodes": 200}, "edges"),
    "describe_entity": ({"name": HUB}, "size"),
}
"""Reads of the hub, and what `cut` says of each."""

ORGANIZED = ("open_nodes", "search_nodes", "read_graph")


@pytest.fixture(scope="module")
def small_replies(settings: Settings) -> Iterator[RunningGateway]:
    """A gateway whose replies may be small, so that what is stored need not be large."""
    with serving(settings.model_copy(update={"max_reply_bytes": MAX_REPLY_BYTES})) as gateway:
        yield gateway


@pytest.fixture
async def secret(issue: NewApiKey, caller: Caller) -> str:
    return (await issue(caller, kind="admin")).secret


@pytest.fixture
async def client(small_replies: RunningGateway, secret: str) -> AsyncIterator[Client]:
    async with in_one_task(small_replies.client(secret, "/mcp/x/all")) as client:
        yield client


async def test_every_read_tells_the_relations_that_fit(
    client: Client, small_replies: RunningGateway, secret: str, subtests: pytest.Subtests
) -> None:
    await store(client)
    async with in_one_task(small_replies.client(secret, "/mcp/x/organize")) as organize:
        calls = [(client, tool, *READS[tool]) for tool in READS] + [
            (organize, tool, *READS[tool]) for tool in ORGANIZED
        ]
        for connected, tool, arguments, cut in calls:
            for moment in ({}, {"as_of": "2"}):
                with subtests.test(tool=tool, organized=connected is organize, **moment):
                    result = await connected.call_tool(tool, arguments | moment)
                    assert not result.is_error, result.content
                    told = result.structured_content or {}
                    assert len(json.dumps(told).encode()) <= MAX_REPLY_BYTES
                    assert told["cut"] == cut
                    found = [relation.get("to") or relation["object"] for relation in told["relations"]]
                    assert found == FAR[: len(found)]
                    assert len(found) > 10
                    note = f"{len(found)} of {COUNT} relations" if tool == "describe_entity" else "Not "
                    assert note in texts_of(result)[-1]


async def test_what_was_left_out_is_told_in_pages(client: Client) -> None:
    await store(client)
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await answer(client, "search_relations", **{"from": HUB}, offset=offset)
        found += [relation["to"] for relation in page["relations"]]
        offset = page.get("nextOffset")
    assert found == FAR


async def test_more_relations_than_an_answer_may_have_are_cut(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were refused: one hub among the entities that a search finds made the whole answer an error."""
    monkeypatch.setattr(subgraphs, "MAX_RELATIONS", 10)
    await store(client)
    for tool in ("open_nodes", "search_nodes", "read_graph"):
        told = await answer(client, tool, **READS[tool][0])
        assert (len(told["relations"]), told["cut"]) == (10, "relations")


async def test_relations_that_fit_are_not_cut(client: Client) -> None:
    await store(client, count=8)
    for tool in READS:
        told = await answer(client, tool, **READS[tool][0])
        assert not told.get("cut")
        assert len(told["relations"]) == 8


async def store(client: Client, count: int = COUNT) -> None:
    await answer(client, "create_entities", entities=[{"name": HUB, "entityType": "hub", "observations": ["is large"]}])
    made = [{"from": HUB, "to": far, "relationType": "knows"} for far in FAR[:count]]
    await answer(client, "create_relations", relations=made)
