"""What docs/remember.md says of kinds: how filters compare them, whose they are, and who tells facts."""

from typing import Any

import pytest
from mcp import Client

from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, RunningGateway, answer


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/all", LEGACY)


async def recalled(client: Client, **filters: Any) -> set[str]:
    told = await answer(client, "recall", query="What does Ada like to drink?", **filters)
    return {memory["text"] for memory in told["memories"]}


async def test_kinds_and_tags_compare_in_any_case(client: Client) -> None:
    item = {"text": "Ada likes to drink tea", "kind": "Préférence", "tags": ["Été"]}
    await answer(client, "remember", items=[item])
    for written in ("Préférence", "préférence", "PRÉFÉRENCE"):
        assert await recalled(client, kinds=[written]) == {item["text"]}
        assert await recalled(client, not_kinds=[written]) == set()
        assert len((await answer(client, "list_nodes", kinds=[written]))["nodes"]) == 1
        assert len((await answer(client, "search_graph", text="tea", kinds=[written]))["hits"]) == 1
    for written in ("été", "ÉTÉ"):
        assert await recalled(client, tags=[written]) == {item["text"]}
        assert await recalled(client, not_tags=[written]) == set()
    assert await recalled(client, kinds=["preference"], tags=["été"]) == set(), "an accent is another letter"


async def test_what_a_memory_lacks_comes_from_its_entity_also_where_it_excludes(client: Client) -> None:
    await answer(
        client,
        "create_entities",
        entities=[{"name": "Ada", "entityType": "Person", "observations": ["likes to drink tea"]}],
    )
    await answer(client, "add_tags", entityName="Ada", tags=["VIP", "old"])
    await answer(
        client, "remember", items=[{"text": "likes to drink milk", "about": ["Ada"], "kind": "habit", "tags": ["new"]}]
    )
    tea, milk = "likes to drink tea", "likes to drink milk"
    assert await recalled(client, kinds=["person"]) == {tea}
    assert await recalled(client, not_kinds=["person"]) == {milk}
    assert await recalled(client, not_tags=["vip"]) == {milk}
    assert await recalled(client, tags=["vip", "OLD"], all_tags=True) == {tea}
    assert await recalled(client, tags=["vip", "new"], all_tags=True) == set()
    assert await recalled(client, tags=["vip", "new"]) == {tea, milk}
    revision = (await answer(client, "get_graph", graph="default"))["revision"]
    assert await recalled(client, not_kinds=["PERSON"], as_of=str(revision)) == {milk}
    assert await recalled(client, tags=["vip", "new"], all_tags=True, as_of=str(revision)) == set()


async def test_changes_of_a_kind_are_found_in_any_case(gateway: RunningGateway, key: str, client: Client) -> None:
    await answer(client, "remember", items=[{"text": "Ada likes to drink tea", "kind": "Préférence"}])
    async with gateway.http(key) as http:
        for kind, found in (("PRÉFÉRENCE", 1), ("préférence", 1), ("preference", 0)):
            page = (await http.get("/v1/graphs/default/changes", params={"kind": kind})).json()
            assert len(page["items"]) == found, kind
            listed = (await http.get("/v1/graphs/default/nodes", params={"kind": kind})).json()
            assert len(listed["items"]) == found, kind


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
