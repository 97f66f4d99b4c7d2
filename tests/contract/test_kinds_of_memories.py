"""What docs/recall.md says of kinds: how filters compare them, whose they are, and who tells facts."""

from collections.abc import AsyncIterator

import pytest
from mcp import Client

from tests.support.gateway import RunningGateway, answer, in_one_task


@pytest.fixture
async def client(gateway: RunningGateway, key: str) -> AsyncIterator[Client]:
    async with in_one_task(gateway.client(key, "/mcp/x/all")) as client:
        yield client


async def recalled(client: Client, **filters: list[str]) -> set[str]:
    told = await answer(client, "recall", query="What does Ada like to drink?", **filters)
    return {memory["text"] for memory in told["memories"]}


async def test_kinds_compare_letter_by_letter_and_tags_in_any_case(client: Client) -> None:
    item = {"text": "Ada likes to drink tea", "kind": "Preference", "tags": ["Drinks"]}
    await answer(client, "remember", items=[item])
    assert await recalled(client, kinds=["Preference"]) == {item["text"]}
    assert await recalled(client, kinds=["preference"]) == set()
    assert await recalled(client, tags=["DRINKS"]) == {item["text"]}


async def test_a_new_entity_takes_the_kind_and_its_memories_without_one_are_found_by_it(client: Client) -> None:
    items = [
        {"text": "likes to drink tea", "about": ["Ada"], "kind": "preference"},
        {"text": "likes to drink in Oslo", "about": ["Ada"]},
    ]
    await answer(client, "remember", items=items)
    assert await recalled(client, kinds=["preference"]) == {"likes to drink tea", "likes to drink in Oslo"}
    assert (await answer(client, "get_entity", name="Ada"))["entityType"] == "preference"


async def test_facts_are_told_by_the_toolsets_that_know_them(client: Client) -> None:
    await answer(client, "remember", items=[{"text": "Ada likes to drink tea"}])
    assert await answer(client, "read_graph") == {"entities": [], "relations": []}
    assert (await answer(client, "search_nodes_ranked", query="tea"))["results"] == []
    assert [node["content"] for node in (await answer(client, "list_nodes"))["nodes"]] == ["Ada likes to drink tea"]
    assert [hit["text"] for hit in (await answer(client, "search", query="tea"))["results"]] == [
        "Ada likes to drink tea"
    ]
