"""What is stored holds up nobody, as the arguments of a call do not (test_event_loop.py): entities of extreme content.

Each graph has an entity, "Alice", which is extreme in some way: in its names, now and in history, and its tags; in its
metadata; in its observations and relations. The examples of the contract, which ask for Alice, are played on each: a
new tool, route or kind of job is part of this once it has its example.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.aliases import service as aliases
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields, Rewrite
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewRelation
from recollect.jobs import service as jobs
from recollect.jobs.kinds import (
    COMPACT_GRAPH,
    DEDUPLICATE,
    DISTIL_THREAD,
    EXPORT_GRAPH,
    FORGET_STATISTICS,
    IMPORT_GRAPH,
    KINDS,
    REEMBED_PASSAGES,
    REINDEX_PASSAGES,
)
from recollect.jobs.model import Job
from recollect.postgres.database import Database
from recollect.retention.erasure import model as erasure
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.tools import CATALOGUE
from recollect_workers import job_loop
from tests.conftest import NewTenant
from tests.contract.examples import EXAMPLES, Played
from tests.support.documents import DOCUMENT, OPERATIONS
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.jobs import Desk, employed, started
from tests.support.loop_bounds import within_bounds
from tests.support.memories import Agent
from tests.support.routes import example_request, stand_ins
from tests.support.watched_gateway import Heartbeat, watched_gateway
from tests.support.worst_calls import on_graph

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("leaves_nothing")]

EXOTIC = "ſtﬁßǰΐ" * 86
"""Letters with many forms."""

ALICE, NAMED_BY_ROUTES = "Alice", "Babbage"
"""Whom the examples of the tools name, and those of the routes."""

FORMER_NAMES = erasure.MAX_NAME_CHARACTERS // 512 - 1
TAGS, OBSERVATIONS, RELATIONS, MENTIONS, DESCRIBED, MENTIONED = 1_500, 4_000, 1_500, 500, 40, 80
BATCH = 500

MAX_HELD_BY_JOB = 0.25
"""Seconds for which a job may block the loop of a worker, which no caller waits for: it renews the leases of jobs."""

NUMBERS = {"said of": "Alice, by Babbage", "some": list(range(15_000))}
"""95 kB of metadata."""


async def of_many_names(agent: Agent) -> None:
    """Alice has as many names and tags as can be erased and stored, most of them former names; many texts name her."""
    tags = tuple(f"{n} {'tag ' * 20}" for n in range(TAGS))
    await agent.create(NewEntity("former 0", "person", ("likes tea",), tags=tags))
    for n in range(FORMER_NAMES - 1):
        await _rename(agent, f"former {n}" if n == 0 else _former(n), _former(n + 1))
    await _rename(agent, _former(FORMER_NAMES - 1), NAMED_BY_ROUTES)
    await _rename(agent, NAMED_BY_ROUTES, ALICE)
    said = "so it was said that Alice came. " + "word " * 390
    for start in range(0, MENTIONS, BATCH):
        told = [NodeFields(f"mention {n}", "note", summary=f"{n} {said}") for n in range(start, start + BATCH)]
        async with agent.writing() as (tx, revision):
            await nodes.create_nodes(tx, revision, told)


async def of_large_metadata(agent: Agent) -> None:
    """Alice and those to whom she is related have as much metadata as allowed, and so have the relations."""
    others = [f"described {n}" for n in range(DESCRIBED)]
    for name in (NAMED_BY_ROUTES, *others):
        async with agent.writing() as (tx, revision):
            await nodes.create_nodes(tx, revision, [NodeFields(name, "person", metadata=NUMBERS)])
    await _rename(agent, NAMED_BY_ROUTES, ALICE)
    for name in [*others, *(f"mentioned {n}" for n in range(MENTIONED))]:
        async with agent.writing() as (tx, revision):
            await relations.create_relations(tx, revision, [NewRelation(ALICE, name, "knows", metadata=NUMBERS)])


async def of_many_statements(agent: Agent) -> None:
    """Alice has thousands of observations and of relations."""
    await agent.create(NAMED_BY_ROUTES)
    await _rename(agent, NAMED_BY_ROUTES, ALICE)
    for start in range(0, OBSERVATIONS, BATCH):
        await agent.observe(ALICE, *(f"{n} {'was said ' * 9}" for n in range(start, start + BATCH)))
    for start in range(0, RELATIONS, BATCH):
        await agent.relate(*((ALICE, f"friend {n}", f"knows {n % 300}") for n in range(start, start + BATCH)))


CONTENTS: Mapping[str, Callable[[Agent], Awaitable[None]]] = {
    "names": of_many_names,
    "metadata": of_large_metadata,
    "statements": of_many_statements,
}


def _former(number: int) -> str:
    return "former 0" if number == 0 else f"{EXOTIC[number % 6 : number % 6 + 490]}{number:06}"


async def _rename(agent: Agent, name: str, new: str) -> None:
    """Give an entity another name; the former one stays as an alias."""
    async with agent.writing() as (tx, revision):
        head = (await nodes.require_entity_heads(tx, revision.graph, [name]))[name]
        await aliases.keep_name(tx, revision, head.id)
        await nodes.rewrite(tx, revision, [Rewrite(head, replace(head.fields, name=new))])


@pytest.fixture(scope="module")
def alone() -> None:
    """Unlike other tests of faults, these share the graphs that they build."""


@pytest.fixture(scope="module")
async def watched(settings: Settings) -> AsyncIterator[RunningGateway]:
    """A gateway whose event loop is watched."""
    async with watched_gateway(settings) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def tenant_caller(new_tenant: NewTenant) -> Caller:
    return operator_caller(await new_tenant())


@pytest.fixture(scope="module")
async def http(watched: RunningGateway, issue: NewApiKey, tenant_caller: Caller) -> AsyncIterator[httpx2.AsyncClient]:
    async with watched.http((await issue(tenant_caller, kind="admin")).secret) as http:
        yield http


@pytest.fixture(scope="module", params=CONTENTS)
async def stored(request: pytest.FixtureRequest, db: Database, tenant_caller: Caller) -> Agent:
    """A graph of such content, of that name."""
    agent = Agent(db, tenant_caller, request.param)
    await CONTENTS[request.param](agent)
    return agent


async def _id_of_alice(agent: Agent) -> str:
    assert agent.graph is not None
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, agent.graph)
        return str((await naming.require_entities(tx, graph, [ALICE]))[ALICE].id)


def _on(graph: str, value: Any) -> Any:
    """The example for another graph."""
    if isinstance(value, dict):
        return {key: _on(graph, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_on(graph, item) for item in value]
    return graph if value == "default" else value


def _of_node(node_id: str, value: Any) -> Any:
    """The example with this node in place of each id."""
    if isinstance(value, dict):
        return {key: _of_node(node_id, item) for key, item in value.items()}
    return node_id if isinstance(value, str) and value.startswith("00000000-0000-7000") else value


async def test_reading_tools_keep_the_bounds(
    watched: RunningGateway, http: httpx2.AsyncClient, stored: Agent, subtests: pytest.Subtests
) -> None:
    """With the filters of the examples, and without them and with the largest limits."""
    assert stored.graph is not None
    alice = await _id_of_alice(stored)
    for tool in CATALOGUE:
        if not tool.read_only:
            continue
        example = _of_node(alice, _on(stored.graph, EXAMPLES[tool.name]))
        for arguments in (example, on_graph(EXAMPLES[tool.name], tool, stored.graph, ALICE, alice)):
            with subtests.test(tool.name, arguments=str(arguments)[:200]):
                async with within_bounds(http):
                    await watched.call(http, tool.name, arguments, path="/mcp/x/all")


async def test_routes_keep_the_bounds(http: httpx2.AsyncClient, stored: Agent, subtests: pytest.Subtests) -> None:
    """Each with its example; the graph itself is deleted last, by `test_what_is_stored_is_deleted`."""
    assert stored.graph is not None
    alice = await _id_of_alice(stored)
    for method, path in OPERATIONS:
        if (method, path) == ("delete", "/v1/graphs/{name}"):
            continue
        names = {**stand_ins(path, graph=stored.graph), "node": alice}
        with subtests.test(f"{method} {path}"):
            request = example_request(DOCUMENT, method, path, names)
            async with within_bounds(http), http.stream(method, **request) as answer:
                async for _ in answer.aiter_raw():
                    pass
            assert answer.status_code < 500


async def test_writing_tools_keep_the_bounds(
    watched: RunningGateway, http: httpx2.AsyncClient, stored: Agent, subtests: pytest.Subtests
) -> None:
    """In the order of the examples, in which each finds what it needs."""
    assert stored.graph is not None
    assert EXAMPLES.keys() >= {tool.name for tool in CATALOGUE}
    played, writing = Played(), {tool.name for tool in CATALOGUE if not tool.read_only}
    plays = {name: example for name, example in EXAMPLES.items() if name in writing}
    plays |= {"undo_changes": {"graph": "default", "since_revision": 1, "dry_run": True}, "compact": plays["compact"]}
    for name, example in sorted(plays.items(), key=lambda play: play[0] == "compact"):  # It ends what can be undone.
        with subtests.test(name):
            arguments = played.fill(_on(stored.graph, example))
            async with within_bounds(http):
                result = await watched.call(http, name, arguments, path="/mcp/x/all")
            played.keep(name, result)


async def test_jobs_keep_the_bounds(
    settings: Settings, db: Database, http: httpx2.AsyncClient, stored: Agent, subtests: pytest.Subtests
) -> None:
    """Each kind of job, by a worker in this process."""
    desk, exported = Desk(db, stored.caller), b""
    assert STARTED_BY.keys() | {DISTIL_THREAD} == set(KINDS)  # That one needs a model: tests/integration/distilling.
    async with employed(settings, db) as context:
        for kind in sorted(STARTED_BY):
            with subtests.test(kind):
                job = await _started(http, desk, stored, kind, exported)
                heartbeat = Heartbeat()
                heartbeat.beat()
                await job_loop.sweep(context)
                held = json.loads(heartbeat.report())
                done = await desk.look(job)
                assert done.status == "succeeded", done
                assert held["loop"] < MAX_HELD_BY_JOB * held["slowness"], held
                exported = await desk.output(job) if kind == EXPORT_GRAPH else exported


STARTED_BY: Mapping[str, Any] = {
    COMPACT_GRAPH: {"retention_days": 0},
    DEDUPLICATE: "/deduplicate",
    EXPORT_GRAPH: "/exports",
    FORGET_STATISTICS: {"tables": ["nodes", "node_versions"]},
    IMPORT_GRAPH: "/imports",
    REEMBED_PASSAGES: "/reembed",
    REINDEX_PASSAGES: "/reindex",
}
"""How each kind of job is started: by a route of a graph, or with arguments. An import comes after the export."""


async def _started(http: httpx2.AsyncClient, desk: Desk, agent: Agent, kind: str, exported: bytes) -> Job:
    """A job on the graph that is due; the import reads what was exported, into another graph."""
    assert agent.graph is not None
    start = STARTED_BY[kind]
    if isinstance(start, dict):
        return await desk.start(kind, graph=agent.graph, **start)
    graph = f"copy-of-{agent.graph}" if kind == IMPORT_GRAPH else agent.graph
    sent: dict[str, Any] = {"json": {"format": "jsonl"}} if kind == EXPORT_GRAPH else {}
    if kind == IMPORT_GRAPH:
        sent = {"content": exported, "headers": {"Content-Type": "application/x-ndjson"}}
    elif kind == REEMBED_PASSAGES:
        sent = {"json": {}}
    answer = await started(await http.post(f"/v1/graphs/{graph}{start}", **sent))
    async with desk.writing() as tx:
        return await jobs.get_job(tx, UUID(answer["id"]))


@pytest.mark.proves("security: erasure")
async def test_what_is_stored_is_deleted_and_erased(
    watched: RunningGateway, http: httpx2.AsyncClient, stored: Agent, subtests: pytest.Subtests
) -> None:
    for name, arguments in {
        "forget": {"graph": stored.graph, "names": [ALICE], "mode": "outdated"},
        "delete_entities": {"graph": stored.graph, "entityNames": [ALICE]},
    }.items():
        with subtests.test(name):
            async with within_bounds(http):
                result = await watched.call(http, name, arguments, path="/mcp/x/all")
            assert not result["isError"], result
    for body in ({"name": NAMED_BY_ROUTES, "dry_run": True}, {"name": NAMED_BY_ROUTES}):
        with subtests.test(json.dumps(body)):
            async with within_bounds(http):
                receipt = await http.post(f"/v1/graphs/{stored.graph}/erase", json=body, timeout=300)
            assert receipt.status_code == 200, receipt.text[:300]
            assert receipt.json()["erased"]["nodes"] >= 1
    with subtests.test("the graph"):
        async with within_bounds(http):
            assert (await http.delete(f"/v1/graphs/{stored.graph}", timeout=300)).status_code == 200
