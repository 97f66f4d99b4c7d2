"""Dismissed duplicates and the filter by author over `/v1`: what the console does, programs do, too."""

from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import httpx2
import pytest

from recollect.caller import Caller, Scope
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.memories import Agent

PAIRS, NODES = "/v1/graphs/default/dismissals", "/v1/graphs/default/nodes"
ALIKE = ("Acme Inc", "Acme Ink", "Acme Inks")


@pytest.fixture
async def http(
    gateway: RunningGateway, issue: NewApiKey, db: Database, caller: Caller
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that reads and writes a graph with three entities that look alike."""
    await Agent(db, caller).create(*(NewEntity(name, "company", ()) for name in ALIKE))
    writer = await issue(caller, scopes=frozenset({Scope.MEMORY_READ, Scope.MEMORY_WRITE}))
    async with gateway.http(writer.secret) as http:
        yield http


async def ids_of(http: httpx2.AsyncClient) -> list[str]:
    return [node["id"] for node in (await http.get(NODES)).json()["items"]]


async def test_a_pair_is_dismissed_listed_and_taken_back(http: httpx2.AsyncClient) -> None:
    one, two, three = await ids_of(http)
    for pair in ((two, one), (one, two), (one, three)):
        answer = await http.put(f"{PAIRS}/{pair[0]}/{pair[1]}")
        assert (answer.status_code, answer.text) == (204, "")
    first = (await http.get(PAIRS, params={"limit": 1})).json()
    rest = (await http.get(PAIRS, params={"cursor": first["next_cursor"]})).json()
    assert rest["next_cursor"] is None
    listed = [*first["items"], *rest["items"]]
    assert [{pair["name"], pair["other"]} for pair in listed] == [{ALIKE[0], ALIKE[2]}, {ALIKE[0], ALIKE[1]}]
    (by,) = {pair["dismissed_by"] for pair in listed}
    assert by.startswith("key:")
    assert (await http.delete(f"{PAIRS}/{one}/{two}")).status_code == 204
    assert (await http.delete(f"{PAIRS}/{one}/{two}")).status_code == 404
    assert [pair["other_id"] for pair in (await http.get(PAIRS)).json()["items"]] == [three]


async def test_what_is_no_pair_of_the_graph_is_refused(http: httpx2.AsyncClient) -> None:
    one, two, _ = await ids_of(http)
    for path in (f"{one}/{uuid4()}", f"{one}/{one}"):
        assert (await http.put(f"{PAIRS}/{path}")).status_code == 404
    for path in (f"/v1/graphs/nowhere/dismissals/{one}/{two}", "/v1/graphs/nowhere/dismissals"):
        answer = await http.request("GET" if path.endswith("s") else "PUT", path)
        assert (answer.status_code, answer.json()["code"]) == (404, "graph_not_found")
    assert (await http.get(PAIRS, params={"cursor": "x"})).status_code == 400
    assert (await http.get(PAIRS)).json() == {"items": [], "next_cursor": None}


async def test_readers_list_pairs_and_dismiss_none(
    http: httpx2.AsyncClient, gateway: RunningGateway, issue: NewApiKey, caller: Caller
) -> None:
    one, two, _ = await ids_of(http)
    await http.put(f"{PAIRS}/{one}/{two}")
    reader = await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))
    async with gateway.http(reader.secret) as reading:
        assert len((await reading.get(PAIRS)).json()["items"]) == 1
        for method in ("PUT", "DELETE"):
            answer = await reading.request(method, f"{PAIRS}/{one}/{two}")
            assert (answer.status_code, answer.json()["code"]) == (403, "scope_required")


async def test_nodes_are_filtered_by_the_author_of_their_newest_version(
    http: httpx2.AsyncClient, db: Database, caller: Caller
) -> None:
    await http.post("/v1/graphs/default/nodes/batch", json={"items": [{"name": ALIKE[1], "tags": ["ink"]}]})
    await Agent(db, replace(caller, subject="key:other")).create("Other")
    listed = (await http.get(NODES)).json()["items"]
    assert len({node["updated_by"] for node in listed}) == 3
    for author in {node["updated_by"] for node in listed}:
        own = (await http.get(NODES, params={"author": author, "limit": 1})).json()
        rest = (await http.get(NODES, params={"author": author, "cursor": own["next_cursor"]})).json()
        found = own["items"] + (rest["items"] if own["next_cursor"] else [])
        assert found == [node for node in listed if node["updated_by"] == author]
    names = {node["name"]: node["updated_by"] for node in listed}
    assert list(names.values()).count(names[ALIKE[1]]) == 1
    assert (await http.get(NODES, params={"author": "key:nobody"})).json()["items"] == []
    assert (await http.get(NODES, params={"author": "x" * 257})).status_code == 400
