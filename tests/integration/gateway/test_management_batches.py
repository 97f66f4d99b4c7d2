"""/v1/graphs/{name}/nodes/batch and /relations/batch: many items in one revision, each with an outcome of its own."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect_gateway.operations.batches import MAX_BATCH, MAX_OBSERVATIONS
from tests.integration.gateway.test_management import done, problem
from tests.support.gateway import RunningGateway, revision_of

GRAPH = "/v1/graphs/default"
NODES, RELATIONS = f"{GRAPH}/nodes/batch", f"{GRAPH}/relations/batch"


@pytest.fixture
async def http(gateway: RunningGateway, admin_key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(admin_key) as client:
        yield client


async def written(http: httpx2.AsyncClient, *items: dict[str, Any], path: str = NODES) -> list[dict[str, Any]]:
    """What became of each item."""
    outcomes: list[dict[str, Any]] = (await done(http, "POST", path, items=list(items)))["items"]
    assert len(outcomes) == len(items)
    return outcomes


async def node(http: httpx2.AsyncClient, node_id: str) -> dict[str, Any]:
    found: dict[str, Any] = await done(http, "GET", f"{GRAPH}/nodes/{node_id}")
    return found


class TestNodes:
    async def test_entities_and_facts_are_created_in_one_revision(
        self, http: httpx2.AsyncClient, db: Database, caller: Caller
    ) -> None:
        ada = {"name": "Ada", "kind": "person", "observations": ["likes tea", "writes programs"], "tags": ["vip"]}
        fact = {"content": "Brass is sold here", "importance": 3, "metadata": {"seen": True}, "thread": "market"}
        outcomes = await written(http, ada, fact, {"name": "Bare"})
        assert [outcome["status"] for outcome in outcomes] == ["new"] * 3
        assert [outcome["observations_added"] for outcome in outcomes] == [2, 0, 0]
        assert await revision_of(db, caller) == 1
        stored = await node(http, "Ada")
        assert (stored["id"], stored["version"]) == (outcomes[0]["id"], outcomes[0]["version"])
        assert (stored["kind"], stored["tags"], stored["observations"]) == ("person", ["vip"], ada["observations"])
        stored = await node(http, outcomes[1]["id"])
        assert (stored["content"], stored["importance"], stored["metadata"]) == (
            "Brass is sold here",
            3,
            {"seen": True},
        )
        assert (stored["thread"], stored["said_at"]) == ("market", stored["written_at"])

    async def test_they_are_found(self, http: httpx2.AsyncClient) -> None:
        await written(http, {"name": "Ada", "observations": ["keeps a platypus"]}, {"content": "Brass is sold here"})
        for question, answer in (("platypus", "keeps a platypus"), ("brass", "Brass is sold here")):
            found = (await done(http, "POST", f"{GRAPH}/recall", query=question))["memories"]
            assert [memory["text"] for memory in found] == [answer]

    async def test_what_an_item_omits_stays(self, http: httpx2.AsyncClient) -> None:
        first = {"name": "Ada", "kind": "person", "content": "A mathematician", "tags": ["vip"], "importance": 5}
        [created] = await written(http, {**first, "observations": ["likes tea"]})
        [again] = await written(http, {**first, "observations": ["likes tea"]})
        assert again == created | {"status": "known", "observations_added": 0}
        [by_name] = await written(http, {"name": "Ada", "importance": 7, "reason": "asked for"})
        [by_id] = await written(http, {"id": created["id"], "tags": [], "observations": ["likes milk"]})
        assert [by_name["status"], by_id["status"], by_id["observations_added"]] == ["updated", "updated", 1]
        stored = await node(http, "Ada")
        assert (stored["content"], stored["kind"], stored["tags"]) == ("A mathematician", "person", [])
        assert (stored["importance"], stored["reason"], stored["version"]) == (7, "asked for", 3)
        assert stored["observations"] == ["likes tea", "likes milk"]

    async def test_observations_alone_are_an_update_of_the_entity(self, http: httpx2.AsyncClient) -> None:
        [created] = await written(http, {"name": "Ada"})
        [more] = await written(http, {"name": "Ada", "observations": ["likes tea"], "thread": "chat"})
        assert (more["status"], more["version"], more["observations_added"]) == ("updated", created["version"], 1)

    async def test_an_item_that_fails_leaves_out_itself_only(self, http: httpx2.AsyncClient) -> None:
        [fact] = await written(http, {"content": "Brass is sold here"})
        outcomes = await written(
            http,
            {"id": str(uuid4()), "content": "nobody"},
            {"name": "Ada"},
            {"name": " Ada ", "kind": "x"},
            {"id": fact["id"], "observations": ["is warm"]},
            {"kind": "person"},
            {"name": "New", "based_on_version": 1},
            {"name": "Bob", "ttl_days": 1e-9},
            {"name": "Eve", "observations": ["hears all"]},
        )
        failed = [(out["error"]["code"], out["error"]["path"]) if out["error"] else out["status"] for out in outcomes]
        assert failed == [
            ("node_not_found", None),
            "new",
            ("invalid_input", "name"),
            ("invalid_input", "observations"),
            ("invalid_input", "content"),
            ("invalid_input", "based_on_version"),
            ("invalid_input", "ttl_days"),
            "new",
        ]
        assert all(
            (out["status"], out["id"], out["version"]) == ("failed", None, None) for out in outcomes if out["error"]
        )
        assert (await node(http, "Eve"))["observations"] == ["hears all"]

    async def test_a_kind_that_the_graph_does_not_allow_fails_alone(self, http: httpx2.AsyncClient) -> None:
        await done(http, "POST", "/v1/graphs", name="people", kind_whitelist=["person"])
        path = "/v1/graphs/people/nodes/batch"
        outcomes = await written(http, {"name": "Ada", "kind": "person"}, {"name": "Rex", "kind": "dog"}, path=path)
        assert [out["status"] for out in outcomes] == ["new", "failed"]
        assert outcomes[1]["error"]["code"] == "kind_not_allowed"

    async def test_a_newer_version_is_not_overwritten(self, http: httpx2.AsyncClient) -> None:
        [first] = await written(http, {"name": "Ada", "content": "one"})
        await written(http, {"name": "Ada", "content": "two", "based_on_version": first["version"]})
        late = {"name": "Ada", "content": "three", "observations": ["late"], "based_on_version": first["version"]}
        [outcome] = await written(http, late)
        assert (outcome["status"], outcome["version"], outcome["observations_added"]) == ("conflict", 2, 0)
        stored = await node(http, "Ada")
        assert (stored["content"], stored["observations"]) == ("two", [])
        [never] = await written(http, {"name": "Ada", "content": "x", "based_on_version": 9})
        assert never["error"]["path"] == "based_on_version"

    async def test_with_the_policy_manual_it_is_written_beside_the_newer_one(self, http: httpx2.AsyncClient) -> None:
        await done(http, "POST", "/v1/graphs", name="people", conflict_policy="manual")
        path = "/v1/graphs/people/nodes/batch"
        await written(http, {"name": "Ada", "content": "one"}, path=path)
        await written(http, {"name": "Ada", "content": "two"}, path=path)
        [outcome] = await written(http, {"name": "Ada", "content": "three", "based_on_version": 1}, path=path)
        assert outcome["status"] == "conflict"
        assert len((await done(http, "GET", "/v1/graphs/people/nodes/Ada"))["conflicts"]) == 1

    async def test_a_forgotten_entity_is_brought_back_without_what_was_known(self, http: httpx2.AsyncClient) -> None:
        await written(http, {"name": "Ada", "content": "old text", "observations": ["likes tea"]})
        await done(http, "POST", f"{GRAPH}/forget", names=["Ada"])
        [outcome] = await written(http, {"name": "Ada", "kind": "person", "observations": ["likes milk"]})
        stored = await node(http, "Ada")
        assert (outcome["status"], stored["status"], stored["content"]) == ("updated", "active", None)
        assert stored["observations"] == ["likes milk"]

    async def test_a_placeholder_becomes_the_entity(self, http: httpx2.AsyncClient) -> None:
        await written(http, {"source": "Ada", "type": "knows", "target": "Bob"}, path=RELATIONS)
        [outcome] = await written(http, {"name": "Ada", "kind": "person"})
        assert outcome["status"] == "new"
        relations = (await done(http, "GET", f"{GRAPH}/nodes/Ada/relations"))["items"]
        assert [relation["source"]["id"] for relation in relations] == [outcome["id"]]


class TestRelations:
    async def test_ends_are_names_or_ids(self, http: httpx2.AsyncClient, db: Database, caller: Caller) -> None:
        ada, fact = await written(http, {"name": "Ada"}, {"content": "Brass is sold here"})
        items = [
            {"source": "Ada", "type": "knows", "target": "Charles"},
            {"source": ada["id"], "type": "knows", "target": "Bob", "metadata": {"since": 1833}},
            {"source": fact["id"], "type": "mentions", "target": "Ada"},
        ]
        outcomes = await written(http, *items, path=RELATIONS)
        assert [outcome["status"] for outcome in outcomes] == ["new"] * 3
        assert await revision_of(db, caller) == 2
        again = await written(http, *items, path=RELATIONS)
        assert [outcome["status"] for outcome in again] == ["known"] * 3
        assert [outcome["id"] for outcome in again] == [outcome["id"] for outcome in outcomes]
        [changed] = await written(http, {**items[1], "metadata": {"since": 1834}}, path=RELATIONS)
        assert (changed["status"], changed["id"]) == ("updated", outcomes[1]["id"])
        found = (await done(http, "GET", f"{GRAPH}/nodes/Ada/relations"))["items"]
        assert {relation["id"] for relation in found} == {outcome["id"] for outcome in outcomes}

    async def test_an_unknown_id_fails_alone_and_leaves_no_placeholder(self, http: httpx2.AsyncClient) -> None:
        unknown = str(uuid4())
        outcomes = await written(
            http,
            {"source": "Ada", "type": "knows", "target": unknown},
            {"source": unknown, "type": "knows", "target": "Ghost"},
            {"source": "Ada", "type": "knows", "target": "Bob"},
            path=RELATIONS,
        )
        assert [outcome["status"] for outcome in outcomes] == ["failed", "failed", "new"]
        assert outcomes[0]["error"]["code"] == "node_not_found"
        problem(await http.post(f"{GRAPH}/explore", json={"start": "Ghost"}), 404, "entity_not_found")


FAULTS: list[tuple[str, dict[str, Any], str]] = [
    (NODES, {}, "items"),
    (NODES, {"items": []}, "items"),
    (NODES, {"items": [{"name": "Ada"}] * (MAX_BATCH + 1)}, "items"),
    (NODES, {"items": [{"name": "Ada"}, {"name": " "}]}, "items.1.name"),
    (NODES, {"items": [{"name": "Ada", "id": str(uuid4())}]}, "items.0.id"),
    (NODES, {"items": [{"name": "Ada", "observations": ["x"] * (MAX_OBSERVATIONS + 1)}]}, "items.0.observations"),
    (NODES, {"items": [{"name": "Ada", "metadata": {"a": "x" * 100_000}}]}, "items.0.metadata"),
    (NODES, {"items": [{"name": "Ada", "colour": "red"}]}, "items.0.colour"),
    (RELATIONS, {"items": [{"source": "Ada", "type": "knows"}]}, "items.0.target"),
    (RELATIONS, {"items": [{"source": "Ada", "type": "", "target": "Bob"}]}, "items.0.type"),
    (RELATIONS, {"items": [{"source": "A", "type": "b", "target": "C"}] * (MAX_BATCH + 1)}, "items"),
]


async def test_a_wrong_body_is_refused_as_a_whole(
    http: httpx2.AsyncClient, db: Database, caller: Caller, admin_key: str, subtests: pytest.Subtests
) -> None:
    secret = {"items": [{"name": "Ada", "observations": [f"has {admin_key}"]}]}
    for path, body, at in [*FAULTS, (NODES, secret, "items.0.observations.0")]:
        with subtests.test(f"{path} {at}"):
            assert problem(await http.post(path, json=body), 400)["path"] == at
    assert await revision_of(db, caller) == 0


async def test_the_largest_batch_is_written_and_can_be_repeated(http: httpx2.AsyncClient) -> None:
    items = [{"name": f"Node {n}", "observations": [f"has the number {n}"]} for n in range(MAX_BATCH)]
    assert {outcome["status"] for outcome in await written(http, *items)} == {"new"}
    assert {outcome["status"] for outcome in await written(http, *items)} == {"known"}
    edges = [{"source": "Node 0", "type": "precedes", "target": item["name"]} for item in items]
    assert {outcome["status"] for outcome in await written(http, *edges, path=RELATIONS)} == {"new"}
