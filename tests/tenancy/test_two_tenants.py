"""Two tenants with the same graphs, names and texts: no use case crosses from one to the other."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import numpy as np
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey
from recollect.accounts.members import service as members
from recollect.accounts.members.model import subject_of
from recollect.caller import Role
from recollect.cells.databases import Databases
from recollect.errors import ErrorCode, Forbidden, NotFound, Unauthenticated
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import service as nodes
from recollect.graph.observations import service as observations
from recollect.graph.passages import service as passages
from recollect.graph.passages.evidence import Evidence
from recollect.graph.relations import service as relations
from recollect.graph.relations import subgraphs
from recollect.jobs import leases
from recollect.jobs import service as jobs
from recollect.jobs.model import JobBounds, JobFilter, LeaseLost, NewJob, StepResult
from recollect.memory.model import NewMemory
from recollect.postgres.database import Database
from recollect.retrieval.recall import store
from recollect.settings import Settings
from tests.support.gateway import NewApiKey
from tests.support.memories import embedder, names, triples
from tests.support.people import joined
from tests.tenancy.conftest import NOBODYS_KIND, PEPPER, Neighbour, contents

Neighbours = tuple[Neighbour, Neighbour]


async def stored(owner: asyncpg.Connection, neighbour: Neighbour, table: str) -> set[UUID]:
    rows = await owner.fetch(f"SELECT id FROM {table} WHERE tenant_id = $1", neighbour.caller.tenant_id)
    return {row["id"] for row in rows}


async def test_writes_of_one_tenant_do_not_change_the_other(neighbours: Neighbours, owner: asyncpg.Connection) -> None:
    mine, other = neighbours
    before = await contents(owner, other)
    await mine.observe("Ada", "was born in London")
    await mine.create("Babbage", "Grace")
    await mine.relate(("Ada", "Babbage", "admires"), ("Grace", "Ada", "reads"))
    await mine.remember("the engine was built in 1991", NewMemory("likes coffee", about=("Ada",)))
    await mine.unobserve(("Ada", "writes programs"))
    await mine.unrelate(("Ada", "Babbage", "knows"))
    await mine.delete("Ada", "Babbage")
    assert await contents(owner, other) == before
    assert (names(await other.read()), triples(await other.read())) == (["Ada"], [("Ada", "Babbage", "knows")])


@pytest.mark.proves("rules: no-foreign-ids")
async def test_a_tenant_does_not_find_memories_of_another(neighbours: Neighbours) -> None:
    mine, other = neighbours
    await mine.create("Zuse")
    await mine.observe("Ada", "kept a platypus called Ferdinand")
    await mine.remember("a submarine is painted yellow")
    assert await mine.embed()
    assert await other.embed()
    assert names(await other.read()) == ["Ada"]
    assert names(await other.open("Zuse")) == []
    for text in ("Zuse", "platypus", "Ferd"):
        assert await other.found(text) == []
    for question in ("platypus", "Which animal was kept?", "yellow submarine", "Zuse"):
        assert set(await other.recalled(question)) <= {"writes programs", "likes tea", "the engine was never built"}
        assert len(await mine.recalled(question)) > 0
    assert await mine.recalled("platypus") != []


async def test_an_equal_memory_of_another_tenant_is_neither_known_nor_close(neighbours: Neighbours) -> None:
    mine, other = neighbours
    await mine.remember("the sluice gate opens at dawn", NewMemory("opens sluice gates", about=("Zuse",)))
    await mine.embed()
    await other.embed()
    remembered = await other.remember("the sluice gate opens at dawn", NewMemory("opens sluice gates", about=("Zuse",)))
    assert [(one.known, one.close) for one in remembered] == [(False, []), (False, [])]
    (again,) = await other.remember("the sluice gate opens at dawn every day")
    assert {older.memory_id for older in again.close} <= {one.id for one in remembered}


@pytest.mark.proves("rules: no-foreign-ids")
async def test_ids_of_another_tenant_open_nothing(neighbours: Neighbours, owner: asyncpg.Connection) -> None:
    mine, other = neighbours
    foreign = list(await stored(owner, other, "nodes"))
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        graph = await graphs.get_graph(tx, "default")
        assert await entities.entities_by_id(GraphView(tx, graph), foreign) == []
        assert (
            await subgraphs.subgraph_within(
                GraphView(tx, graph), await entities.entities_by_id(GraphView(tx, graph), foreign)
            )
        ).relations == []


@pytest.mark.proves("rules: no-foreign-ids")
async def test_ids_of_another_tenant_delete_nothing(neighbours: Neighbours, owner: asyncpg.Connection) -> None:
    mine, other = neighbours
    before = await contents(owner, other)
    foreign = list(await stored(owner, other, "nodes"))
    async with mine.writing() as (tx, revision):
        await relations.delete_nodes(tx, revision, foreign)
        await nodes.remove_nodes(tx, revision, foreign)
        assert await observations.find_observations(tx, revision, [(id_, "likes tea") for id_ in foreign]) == {}
        assert revision.is_empty
    assert await contents(owner, other) == before


async def test_a_worker_claims_and_settles_only_passages_of_its_tenant(
    neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = neighbours
    async with mine.db.transaction(mine.caller) as tx:
        claimed = await passages.claim_pending(tx, model="forged", limit=1_000, lease_seconds=60)
    assert {passage.id for passage in claimed} == await stored(owner, mine, "passages")
    foreign = list(await stored(owner, other, "passages"))
    vectors = np.ones((len(foreign), embedder().dimensions), np.float32)
    made: dict[str, Any] = {"ids": foreign, "vectors": vectors, "evidence": [Evidence(b"", [])] * len(foreign)}
    epochs = "SELECT index_epoch FROM graph_indexes WHERE tenant_id = $1"
    async with mine.db.transaction(mine.caller) as tx:
        theirs = [replace(claimed[0], id=passage_id) for passage_id in foreign]
        assert await passages.settle(tx, theirs, model="forged", **made) == 0
        assert await passages.settle(tx, [claimed[0], *theirs], model="forged", **made) == 0
    assert await owner.fetchval("SELECT count(*) FROM passages WHERE embedding_model = 'forged'") == 0
    for table in ("passage_vectors", "passage_evidence"):
        assert await owner.fetchval(f"SELECT count(*) FROM {table} WHERE model = 'forged'") == 0
    assert await owner.fetchval(epochs, other.caller.tenant_id) == 0
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        assert await store.load_evidence(tx, foreign, [], model="model", with_neighbours=True) == {}
    before = await owner.fetchval(epochs, mine.caller.tenant_id)
    assert await other.embed() == len(foreign)
    assert await owner.fetchval(epochs, mine.caller.tenant_id) == before


@pytest.mark.proves("jobs: stored-jobs-are-bounded", "security: jobs-and-keys")
async def test_jobs_of_another_tenant_are_neither_read_nor_ended(
    neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = neighbours
    before, bounds = await contents(owner, other), JobBounds.of(Settings())
    refused: list[tuple[str, ErrorCode]] = []
    for job_id in (*(job.id for job in other.jobs), uuid4()):
        for use in (
            lambda tx, job_id: jobs.get_job(tx, job_id),
            lambda tx, job_id: jobs.cancel_job(tx, job_id, bounds),
            lambda tx, job_id: jobs.start(tx, job_id),
            lambda tx, job_id: jobs.open_output(tx, job_id),
            lambda tx, job_id: jobs.append_input(tx, job_id, [b"x"], bounds),
        ):
            with pytest.raises(NotFound) as error:
                async with mine.db.transaction(mine.caller) as tx:
                    await use(tx, job_id)
            refused.append((str(error.value), error.value.code))
    assert len(set(refused)) == 1, "as one that never was"
    assert [chunk async for chunk in jobs.read_output(mine.db, mine.caller, other.done)] == []
    async with mine.db.transaction(mine.caller) as tx:
        assert await jobs.read_input(tx, other.held, 0) is None
        assert {job.id for job in await jobs.list_jobs(tx)} == {job.id for job in mine.jobs}
        alike = await jobs.list_jobs(tx, JobFilter(kind=other.due.kind))
        assert {job.id for job in alike} == {job.id for job in mine.jobs if job.kind == mine.due.kind}
    assert await contents(owner, other) == before
    assert [chunk async for chunk in jobs.read_output(other.db, other.caller, other.done)] == [b"what was found"]


async def test_a_worker_claims_and_ends_only_jobs_of_its_tenant(
    neighbours: Neighbours, owner: asyncpg.Connection
) -> None:
    mine, other = neighbours
    before, bounds = await contents(owner, other), JobBounds.of(Settings())
    async with mine.db.transaction(mine.caller) as tx:
        claimed = await leases.claim_job(tx, [NOBODYS_KIND], bounds)
        assert claimed is not None
        assert claimed.id == mine.due.id
        assert await leases.claim_job(tx, [NOBODYS_KIND], bounds) is None
    await owner.execute("UPDATE jobs SET lease = $1, claimed_until = now() WHERE id = $2", claimed.lease, other.due.id)
    forged = replace(claimed, id=other.due.id)
    step = StepResult({}, 1, finished=True, output=(b"forged",))
    for use in (
        lambda tx: leases.record_step(tx, forged, step, bounds),
        lambda tx: leases.release_job(tx, forged, bounds),
        lambda tx: leases.fail_lost_job(tx, forged, bounds),
    ):
        with pytest.raises(LeaseLost):
            async with mine.db.transaction(mine.caller) as tx:
                await use(tx)
    async with mine.db.transaction(mine.caller) as tx:
        assert await jobs.erase(tx) == 2
    await owner.execute("UPDATE jobs SET lease = NULL, claimed_until = NULL WHERE id = $1", other.due.id)
    assert await contents(owner, other) == before


async def test_a_key_of_another_tenant_authorizes_no_work(neighbours: Neighbours, issue: NewApiKey) -> None:
    mine, other = neighbours
    own, foreign = [(await issue(neighbour.caller)).key.id for neighbour in (mine, other)]
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        await identity.require_subject_active(tx, f"key:{own}")
        with pytest.raises(Unauthenticated):
            await identity.require_subject_active(tx, f"key:{foreign}")
    async with other.db.transaction(other.caller) as tx:
        await identity.revoke_key(tx, foreign)
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        await identity.require_subject_active(tx, f"key:{own}")


async def test_only_a_member_of_the_tenant_authorizes_work(neighbours: Neighbours) -> None:
    mine, other = neighbours
    own, foreign = [await joined(Databases(each.db), each.caller, Role.MEMBER, pepper=PEPPER) for each in (mine, other)]
    async with mine.db.transaction(mine.caller) as tx:
        await identity.require_subject_active(tx, subject_of(own.id))
        with pytest.raises(Unauthenticated):
            await identity.require_subject_active(tx, subject_of(foreign.id))
        await members.remove_member(tx, own.id)
        with pytest.raises(Unauthenticated):
            await identity.require_subject_active(tx, subject_of(own.id))


async def test_a_job_cannot_have_a_graph_of_another_tenant(neighbours: Neighbours, db: Database) -> None:
    mine, other = neighbours
    async with db.transaction(other.caller) as tx:
        foreign = (await graphs.get_graph(tx, "default")).id
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        async with db.transaction(mine.caller) as tx:
            await jobs.schedule(tx, NewJob(NOBODYS_KIND, foreign))
    async with mine.db.transaction(mine.caller) as tx:
        assert await jobs.erase(tx, foreign) == 0
        with pytest.raises(NotFound):
            await graphs.lock_graph_by_id(tx, foreign)


@pytest.mark.proves("security: jobs-and-keys")
async def test_a_key_of_another_tenant_is_not_found(neighbours: Neighbours) -> None:
    """The answer is the same as for an unknown key."""
    mine, other = neighbours
    assert other.key is not None
    for key_id in (other.key.key.id, uuid4()):
        with pytest.raises(NotFound, match=r"^There is no such key\.$") as refused:
            async with mine.db.transaction(mine.caller) as tx:
                await identity.revoke_key(tx, key_id)
        assert refused.value.code is ErrorCode.KEY_NOT_FOUND
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        assert mine.key is not None
        assert await identity.list_keys(tx) == [mine.key.key]
    found = await identity.authenticate(Databases(mine.db), other.key.secret, pepper=PEPPER)
    assert found.tenant_id == other.caller.tenant_id


async def test_a_key_cannot_default_to_a_graph_of_another_tenant(neighbours: Neighbours, db: Database) -> None:
    mine, other = neighbours
    async with db.transaction(other.caller) as tx:
        foreign = (await graphs.get_graph(tx, "default")).id
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        async with db.transaction(mine.caller) as tx:
            await identity.create_key(tx, NewKey("greedy", default_graph_id=foreign), pepper=PEPPER)


async def test_an_allow_list_of_another_tenants_graphs_reaches_nothing(neighbours: Neighbours, db: Database) -> None:
    mine, other = neighbours
    async with db.transaction(other.caller) as tx:
        foreign = (await graphs.get_graph(tx, "default")).id
    greedy = replace(mine, caller=replace(mine.caller, graphs=frozenset([foreign])))
    for call in (greedy.read, greedy.create, greedy.head):
        with pytest.raises(Forbidden):
            await call()


async def test_graphs_of_one_name_are_separate(neighbours: Neighbours, db: Database) -> None:
    mine, other = neighbours
    for neighbour in neighbours:
        async with db.transaction(neighbour.caller) as tx:
            await graphs.create_graph(tx, NewGraph("notes", metadata={"of": neighbour.caller.tenant}))
    for neighbour in neighbours:
        async with db.transaction(neighbour.caller, read_only=True) as tx:
            assert [graph.name for graph in await graphs.list_graphs(tx)] == ["default", "notes"]
            assert (await graphs.get_graph(tx, "notes")).metadata == {"of": neighbour.caller.tenant}
    async with db.transaction(mine.caller) as tx:
        await graphs.create_graph(tx, NewGraph("secret"))
    assert names(await replace(other, graph="secret").read()) == []
    with pytest.raises(NotFound):
        await replace(other, graph="secret").head()


async def test_entities_of_one_name_are_separate(neighbours: Neighbours, owner: asyncpg.Connection) -> None:
    mine, other = neighbours
    for table in ("nodes", "node_versions", "observations", "relations", "passages", "graphs", "api_keys"):
        assert (await stored(owner, mine, table)).isdisjoint(await stored(owner, other, table)), table
