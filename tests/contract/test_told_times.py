"""What a tool tells as the time of a thing finds that thing, by every tool that takes a time, whatever its dialect."""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import httpx2
import pytest
from mcp import Client

from tests.support.gateway import RunningGateway, answer, held, texts_of

NAMES = [f"Thing {number}" for number in range(8)]


@pytest.fixture
async def client(gateway: RunningGateway, key: str) -> AsyncIterator[Client]:
    async with held(gateway.client(key, "/mcp/x/all")) as client:
        yield client


@pytest.fixture
async def told(client: Client) -> dict[str, dict[str, str]]:
    """Entities, each of a revision of its own, as an export tells them: with times in milliseconds."""
    for name in NAMES:
        entity = {"name": name, "entityType": "thing", "observations": [f"{name} was seen"]}
        await answer(client, "create_entities", entities=[entity])
    found = (await answer(client, "search_by_date_range"))["entities"]
    assert [one["name"] for one in found] == NAMES
    # Milliseconds that hold none of a thing's microseconds: all of them by chance once in 10^24.
    assert all(datetime.fromisoformat(one["createdAt"]).microsecond % 1_000 == 0 for one in found)
    return {one["name"]: one for one in found}


async def test_a_search_up_to_it_and_from_it_on(client: Client, told: dict[str, dict[str, str]]) -> None:
    for name, entity in told.items():
        for field in ("createdAt", "lastModified"):
            for bound in ("startDate", "endDate"):
                found = await answer(client, "search_by_date_range", **{bound: entity[field]})
                assert name in [one["name"] for one in found["entities"]], (bound, entity)


async def test_an_export_up_to_it_and_from_it_on(client: Client, told: dict[str, dict[str, str]]) -> None:
    for name, entity in told.items():
        only = {"startDate": entity["createdAt"], "endDate": entity["lastModified"]}
        result = await client.call_tool("export_graph", {"format": "json", "filter": only})
        assert name in [one["name"] for one in json.loads(texts_of(result)[0])["entities"]]


async def test_the_graph_as_it_was_then(client: Client, told: dict[str, dict[str, str]]) -> None:
    for name, entity in told.items():
        then = entity["createdAt"]
        graph = await answer(client, "read_graph", as_of=then)
        assert name in [one["name"] for one in graph["entities"]]
        assert name in json.dumps(await answer(client, "get_entity", name=name, as_of=then))


async def test_what_an_agent_recalls(client: Client, told: dict[str, dict[str, str]]) -> None:
    for name in told:
        [memory] = (await answer(client, "recall", query=f"{name} was seen", about=[name]))["memories"]
        at = told[name]["createdAt"]
        for bounds in ({"since": memory["at"], "until": memory["at"]}, {"since": at, "until": at}, {"as_of": at}):
            found = await answer(client, "recall", query=f"{name} was seen", about=[name], **bounds)
            assert [one["id"] for one in found["memories"]] == [memory["id"]], (bounds, memory)


async def test_a_version_at_its_time(client: Client, told: dict[str, dict[str, str]]) -> None:
    for node in (await answer(client, "list_nodes"))["nodes"]:
        for time in (node["created_at"], told[node["name"]]["createdAt"]):
            found = await answer(client, "get_node_by_lineage", lineage_id=node["lineage_id"], at_time=time)
            assert found["node"]["id"] == node["id"]


async def test_milliseconds_of_the_contract(client: Client) -> None:
    for number in range(8):
        made = (await answer(client, "create_node", text=f"Fact number {number}", auto_link=False))["node"]
        for as_of in (made["created_at"], str(made["created_at"])):
            found = await answer(client, "get_node", node_id=made["id"], as_of=as_of)
            assert found["node"]["text"] == made["text"]


async def test_the_routes_of_exports(
    client: Client, gateway: RunningGateway, key: str, told: dict[str, dict[str, Any]]
) -> None:
    async with gateway.http(key) as http:
        for name, entity in told.items():
            at = entity["createdAt"]
            for query in ({"since": at, "until": at}, {"as_of": at}):
                exported = await http.get("/v1/graphs/default/export", params=query)
                assert f'"name":"{name}"' in exported.text.replace('": "', '":"'), (query, exported.text)


async def test_what_is_older_than_itself_is_not_archived(client: Client, told: dict[str, dict[str, str]]) -> None:
    """`olderThan` is a time before which: a thing's own time leaves it."""
    for name, entity in told.items():
        found = await answer(client, "archive_entities", olderThan=entity["lastModified"], dryRun=True)
        assert name not in json.dumps(found)


async def test_a_number_is_a_revision(client: Client, told: dict[str, dict[str, str]]) -> None:
    graph = await answer(client, "read_graph", as_of=3)
    assert [one["name"] for one in graph["entities"]] == NAMES[:3]
    odd: list[Any] = [3.5, True, -1, [], 10**30]
    for nonsense in odd:
        result = await client.call_tool("read_graph", {"as_of": nonsense})
        assert result.is_error
        assert texts_of(result)[0].startswith("as_of: ")


async def test_a_number_in_a_route(
    client: Client, gateway: RunningGateway, key: str, told: dict[str, dict[str, Any]]
) -> None:
    async with gateway.http(key) as http:
        response: httpx2.Response = await http.post("/v1/graphs/default/exports", json={"as_of": 3})
        assert response.status_code == 202, response.text
        response = await http.post("/v1/graphs/default/recall", json={"query": "Thing", "as_of": 3})
        assert response.status_code == 200, response.text
