"""The time of an object, as a tool returns it, finds the object by every tool that accepts a time, in any dialect."""

import json
from datetime import datetime
from typing import Any

import httpx2
import pytest
from mcp import Client

from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, RunningGateway, answer, texts_of

NAMES = [f"Thing {number}" for number in range(8)]


@pytest.fixture
async def client(connected: ConnectedClient, key: str) -> Client:
    return await connected(key, "/mcp/x/all", LEGACY)


@pytest.fixture
async def created(client: Client) -> dict[str, dict[str, str]]:
    """Entities of a revision each, in the dialect that has times in milliseconds."""
    for name in NAMES:
        entity = {"name": name, "entityType": "thing", "observations": [f"{name} was seen"]}
        await answer(client, "create_entities", entities=[entity])
    found = (await answer(client, "search_by_date_range"))["entities"]
    assert [one["name"] for one in found] == NAMES
    # Some entity has microseconds that its milliseconds cut off: by chance none has once in 10^24.
    assert all(datetime.fromisoformat(one["createdAt"]).microsecond % 1_000 == 0 for one in found)
    return {one["name"]: one for one in found}


@pytest.mark.proves("rules: returned-times-can-be-used")
async def test_a_date_range_that_starts_or_ends_at_the_time_finds_the_entity(
    client: Client, created: dict[str, dict[str, str]]
) -> None:
    for name, entity in created.items():
        for field in ("createdAt", "lastModified"):
            for bound in ("startDate", "endDate"):
                found = await answer(client, "search_by_date_range", **{bound: entity[field]})
                assert name in [one["name"] for one in found["entities"]], (bound, entity)


@pytest.mark.proves("rules: returned-times-can-be-used")
async def test_an_export_that_starts_and_ends_at_the_time_has_the_entity(
    client: Client, created: dict[str, dict[str, str]]
) -> None:
    for name, entity in created.items():
        only = {"startDate": entity["createdAt"], "endDate": entity["lastModified"]}
        result = await client.call_tool("export_graph", {"format": "json", "filter": only})
        assert name in [one["name"] for one in json.loads(texts_of(result)[0])["entities"]]


@pytest.mark.proves("rules: returned-times-can-be-used")
async def test_the_graph_as_of_the_time_has_the_entity(client: Client, created: dict[str, dict[str, str]]) -> None:
    for name, entity in created.items():
        then = entity["createdAt"]
        graph = await answer(client, "read_graph", as_of=then)
        assert name in [one["name"] for one in graph["entities"]]
        assert name in json.dumps(await answer(client, "get_entity", name=name, as_of=then))


@pytest.mark.proves("rules: returned-times-can-be-used")
async def test_recall_bounded_by_the_time_finds_the_memory(client: Client, created: dict[str, dict[str, str]]) -> None:
    for name in created:
        [memory] = (await answer(client, "recall", query=f"{name} was seen", about=[name]))["memories"]
        at = created[name]["createdAt"]
        for bounds in ({"since": memory["at"], "until": memory["at"]}, {"since": at, "until": at}, {"as_of": at}):
            found = await answer(client, "recall", query=f"{name} was seen", about=[name], **bounds)
            assert [one["id"] for one in found["memories"]] == [memory["id"]], (bounds, memory)


@pytest.mark.proves("rules: returned-times-can-be-used")
async def test_a_version_is_read_at_its_time(client: Client, created: dict[str, dict[str, str]]) -> None:
    for node in (await answer(client, "list_nodes"))["nodes"]:
        for time in (node["created_at"], created[node["name"]]["createdAt"]):
            found = await answer(client, "get_node_by_lineage", lineage_id=node["lineage_id"], at_time=time)
            assert found["node"]["id"] == node["id"]


@pytest.mark.proves("rules: returned-times-can-be-used")
async def test_a_fact_is_read_at_its_milliseconds(client: Client) -> None:
    for number in range(8):
        made = (await answer(client, "create_node", text=f"Fact number {number}", auto_link=False))["node"]
        for as_of in (made["created_at"], str(made["created_at"])):
            found = await answer(client, "get_node", node_id=made["id"], as_of=as_of)
            assert found["node"]["text"] == made["text"]


@pytest.mark.proves("rules: returned-times-can-be-used")
async def test_the_export_route_accepts_the_time(
    client: Client, gateway: RunningGateway, key: str, created: dict[str, dict[str, Any]]
) -> None:
    async with gateway.http(key) as http:
        for name, entity in created.items():
            at = entity["createdAt"]
            for query in ({"since": at, "until": at}, {"as_of": at}):
                exported = await http.get("/v1/graphs/default/export", params=query)
                assert f'"name":"{name}"' in exported.text.replace('": "', '":"'), (query, exported.text)


async def test_an_entity_is_not_older_than_its_own_time(client: Client, created: dict[str, dict[str, str]]) -> None:
    """`olderThan` is exclusive: the time of an entity does not archive it."""
    for name, entity in created.items():
        found = await answer(client, "archive_entities", olderThan=entity["lastModified"], dryRun=True)
        assert name not in json.dumps(found)


@pytest.mark.proves("rules: reads-of-the-past")
async def test_a_number_as_as_of_is_a_revision(client: Client, created: dict[str, dict[str, str]]) -> None:
    graph = await answer(client, "read_graph", as_of=3)
    assert [one["name"] for one in graph["entities"]] == NAMES[:3]
    odd: list[Any] = [3.5, True, -1, [], 10**30]
    for nonsense in odd:
        result = await client.call_tool("read_graph", {"as_of": nonsense})
        assert result.is_error
        assert texts_of(result)[0].startswith("as_of: ")


async def test_routes_accept_a_revision_as_as_of(
    client: Client, gateway: RunningGateway, key: str, created: dict[str, dict[str, Any]]
) -> None:
    async with gateway.http(key) as http:
        response: httpx2.Response = await http.post("/v1/graphs/default/exports", json={"as_of": 3})
        assert response.status_code == 202, response.text
        response = await http.post("/v1/graphs/default/recall", json={"query": "Thing", "as_of": 3})
        assert response.status_code == 200, response.text
