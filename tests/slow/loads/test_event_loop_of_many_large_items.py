"""Calls about as many things as allowed, each of them large: what is stored of each is handled with others in between.

Each fact has as many members of metadata as fit into its bound, and each entity so many other names that their words
would take half a second for each of its passages.
"""

from collections.abc import AsyncIterator
from uuid import UUID

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.aliases import service as aliases
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields
from recollect.postgres.database import Database
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.loop_bounds import within_bounds
from tests.support.memories import Agent
from tests.support.watched_gateway import watched_gateway

pytestmark = pytest.mark.usefixtures("leaves_nothing")

GRAPH, COUNT = "large", 40
MANY = {f"k{n:05}": n for n in range(7_000)}
"""95 kB of metadata."""

ALIASES, LONG_NAME = 2_000, "the one who is called " * 18
NAMED = "Alice"


@pytest.fixture(scope="module")
def alone() -> None:
    """These share the graph that they build."""


@pytest.fixture(scope="module")
async def caller(new_tenant: NewTenant) -> Caller:
    return operator_caller(await new_tenant())


@pytest.fixture(scope="module")
async def watched(settings: Settings) -> AsyncIterator[RunningGateway]:
    async with watched_gateway(settings) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def http(watched: RunningGateway, issue: NewApiKey, caller: Caller) -> AsyncIterator[httpx2.AsyncClient]:
    async with watched.http((await issue(caller, kind="admin")).secret) as http:
        yield http


@pytest.fixture(scope="module")
async def facts(db: Database, caller: Caller) -> list[UUID]:
    """The ids of facts of much metadata."""
    agent, ids = Agent(db, caller, GRAPH), list[UUID]()
    for start in range(0, COUNT, 10):
        told = [NodeFields(None, "note", content=f"fact {n}", metadata=MANY) for n in range(start, start + 10)]
        async with agent.writing() as (tx, revision):
            ids += await nodes.create_nodes(tx, revision, told)
    return ids


async def test_calls_about_many_facts_of_much_metadata_keep_the_bounds(
    watched: RunningGateway, http: httpx2.AsyncClient, facts: list[UUID], subtests: pytest.Subtests
) -> None:
    with subtests.test("too many"):
        many = [{"name": f"entity {n}", "metadata": MANY} for n in range(50)]
        for start in range(0, 50, 5):
            await http.post(f"/v1/graphs/{GRAPH}/nodes/batch", json={"items": many[start : start + 5]})
        both = [*({"id": str(fact)} for fact in facts), *({"name": item["name"]} for item in many)]
        async with within_bounds(http):
            answer = await http.post(f"/v1/graphs/{GRAPH}/nodes/batch", json={"items": both}, timeout=120)
        assert (answer.status_code, answer.json()["code"]) == (413, "request_too_large")
        again = [{"name": item["name"], "entityType": "t", "observations": ["x"]} for item in many]
        file = {"entities": again, "relations": []}
        async with within_bounds(http):
            answer = await http.post(f"/v1/graphs/{GRAPH}/import", params={"strategy": "merge"}, json=file, timeout=120)
        assert (answer.status_code, answer.json()["code"]) == (413, "request_too_large")
    tagged = [{"id": str(fact), "tags": ["a tag"], "based_on_version": 1} for fact in facts]
    for name, body, key in (
        ("tagged", tagged, "updated"),
        ("known", [{"id": item["id"], "tags": item["tags"], "based_on_version": 1} for item in tagged], "known"),
    ):
        with subtests.test(name):
            async with within_bounds(http):
                answer = await http.post(f"/v1/graphs/{GRAPH}/nodes/batch", json={"items": body}, timeout=120)
            assert {item["status"] for item in answer.json()["items"]} == {key}, answer.text[:300]
    with subtests.test("said again"):
        items = [{"text": f"fact {n}", "kind": "note", "tags": ["again"]} for n in range(COUNT)]
        async with within_bounds(http):
            result = await watched.call(http, "remember", {"graph": GRAPH, "items": items}, path="/mcp/x/all")
        assert {memory["status"] for memory in result["structuredContent"]["memories"]} == {"updated"}, result
    with subtests.test("forgotten"):
        arguments = {"graph": GRAPH, "ids": list(map(str, facts)), "reason": "done"}
        async with within_bounds(http):
            result = await watched.call(http, "forget", arguments, path="/mcp/x/all")
        assert len(result["structuredContent"]["forgotten"]) == COUNT, result


async def test_what_is_said_of_an_entity_of_many_names_keeps_the_bounds(
    watched: RunningGateway, http: httpx2.AsyncClient, db: Database, caller: Caller
) -> None:
    agent = Agent(db, caller, GRAPH)
    await agent.create(NAMED)
    async with agent.writing() as (tx, revision):
        head = (await nodes.require_entity_heads(tx, revision.graph, [NAMED]))[NAMED]
        await aliases.alias(tx, revision, {head.id: [f"{LONG_NAME}{n}" for n in range(ALIASES)]})
    said = [f"says {n}" for n in range(100)]
    arguments = {"graph": GRAPH, "observations": [{"entityName": NAMED, "contents": said}]}
    async with within_bounds(http):
        result = await watched.call(http, "add_observations", arguments, path="/mcp/x/memory")
    assert not result["isError"], result
