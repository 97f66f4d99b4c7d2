"""Lineages, subgraphs and whole graphs, without a transport: concurrent writers, batches, and deletion."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.identity import service as identity
from recollect.curation.archiving import service as archiving
from recollect.curation.archiving.model import ArchiveCriteria
from recollect.curation.duplicates import service as duplicates
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange
from recollect.errors import Conflict, ErrorCode, Forbidden, InvalidInput, NotFound, RecollectError, Unavailable
from recollect.fairness.computing import finish
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, GraphPatch, NewGraph
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Draft, PutOutcome, Version
from recollect.graph.nodes.model import NodeFields
from recollect.graph.relations.model import EdgeUpsert
from recollect.memory import exploring, relating, writing
from recollect.memory.model import EdgeSpec, MemoryRef, NodeSpec, WrittenSubgraph
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings
from tests.support.gateway import NewApiKey, eventually
from tests.support.memories import Agent, names

WRITERS = 12
TABLES = ("nodes", "node_versions", "aliases", "observations", "relations", "passages", "changes")


async def put(
    agent: Agent, content: str, node_id: UUID | None = None, *, based_on: int | None = None, kind: str = "note"
) -> PutOutcome:
    """Write one version, in a call of its own."""
    async with agent.writing() as (tx, revision):
        fields = NodeFields(kind=kind, content=content)
        return await lineages.put_node(tx, revision, Draft(fields, node_id, based_on, content_only=True))


async def history(agent: Agent, node_id: UUID) -> list[Version]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await lineages.history(tx, await graphs.get_graph(tx, agent.graph or "default"), node_id)


async def make(agent: Agent, new: NewGraph) -> Agent:
    """The same agent in a new graph."""
    async with agent.db.transaction(agent.caller) as tx:
        await graphs.create_graph(tx, new)
    return replace(agent, graph=new.name)


async def configure(agent: Agent, patch: GraphPatch, name: str = "default") -> Graph:
    async with agent.db.transaction(agent.caller) as tx:
        return await graphs.configure_graph(tx, name, patch, "test")


async def delete(agent: Agent, name: str) -> bool:
    async with agent.db.transaction(agent.caller) as tx:
        return await graphs.delete_graph(tx, name, "test")


async def contents(owner: asyncpg.Connection, graph_id: UUID) -> dict[str, int]:
    """The number of rows of a graph in each table."""
    count = "SELECT count(*) FROM {} WHERE graph_id = $1"
    return {table: await owner.fetchval(count.format(table), graph_id) for table in (*TABLES, "graph_heads")}


async def compressed(tx: Transaction, graph: str) -> None:
    """Merge duplicates as compress_graph does."""
    searched = await duplicates.open_search(await graphs.view(tx, graph), threshold=0.5)
    await duplicates.merge_found(tx, searched, "test", finish(searched.groups()))


async def is_somebody_waiting(owner: asyncpg.Connection) -> bool:
    """Whether somebody waits for a lock."""
    waiting: bool = await owner.fetchval("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted)")
    return waiting


class TestWritersOfOneLineage:
    @pytest.mark.proves("memgraph: concurrent-writers")
    async def test_lww_keeps_every_concurrent_put_in_history(self, agent: Agent) -> None:
        node = (await put(agent, "first")).node_id
        based_on = [1 if n % 2 else None for n in range(WRITERS)]
        puts = await asyncio.gather(*(put(agent, f"of {n}", node, based_on=b) for n, b in enumerate(based_on)))
        assert not any(one.conflict for one in puts)
        versions = await history(agent, node)
        assert [version.version for version in versions] == list(range(WRITERS + 1, 0, -1))
        assert sorted(version.content or "" for version in versions[:-1]) == sorted(f"of {n}" for n in range(WRITERS))
        assert {one.version: f"of {n}" for n, one in enumerate(puts)} == {v.version: v.content for v in versions[:-1]}
        assert [version.is_current for version in versions] == [True] + [False] * WRITERS
        assert [version.superseded_by for version in versions[1:]] == [version.id for version in versions[:-1]]

    @pytest.mark.proves("memgraph: concurrent-writers")
    async def test_manual_makes_every_concurrent_put_a_head(self, agent: Agent) -> None:
        agent = await make(agent, NewGraph("shared", "manual"))
        node = (await put(agent, "first")).node_id
        puts = await asyncio.gather(*(put(agent, f"of {n}", node, based_on=1) for n in range(WRITERS)))
        assert sorted(one.conflict for one in puts) == [False] + [True] * (WRITERS - 1)
        *heads, first = await history(agent, node)
        assert sorted(head.content or "" for head in heads) == sorted(f"of {n}" for n in range(WRITERS))
        assert all(set(head.conflicts) == {other.id for other in heads} - {head.id} for head in heads)
        assert first.superseded_by in {head.id for head in heads}
        settled = await put(agent, "all of it", node, based_on=heads[0].version)
        newest, *others = await history(agent, node)
        assert (newest.version, newest.conflicts, settled.conflict) == (WRITERS + 2, (), False)
        assert {other.superseded_by for other in others[:-1]} == {newest.id}


class TestConfiguration:
    async def test_a_change_is_one_revision_and_no_change_is_none(
        self, agent: Agent, owner: asyncpg.Connection
    ) -> None:
        await agent.create("Ada")
        before = await agent.head()
        graph = await configure(agent, GraphPatch(kind_whitelist=("note",), metadata={"a": 1}))
        after = await agent.head()
        assert (graph.kind_whitelist, graph.metadata) == (("note",), {"a": 1})
        assert (after.revision, after.entities) == (before.revision + 1, 1)
        assert after.at > before.at
        change = await owner.fetchrow("SELECT ids, counts FROM changes WHERE graph_id = $1 AND revision = 2", graph.id)
        assert change is not None
        assert change["ids"] == [graph.id]
        assert await configure(agent, GraphPatch(kind_whitelist=("note",))) == graph
        assert (await agent.head()).revision == after.revision

    async def test_an_invalid_name_is_refused(self, agent: Agent) -> None:
        await agent.create("Ada")
        with pytest.raises(InvalidInput):
            await configure(agent, GraphPatch(name="papers\n"))

    @pytest.mark.parametrize("renamed", [False, True])
    async def test_a_name_that_is_being_taken_concurrently_is_refused(
        self, agent: Agent, owner: asyncpg.Connection, renamed: bool
    ) -> None:
        await agent.create("Ada")
        notes = await make(agent, NewGraph("notes"))
        async with agent.db.transaction(agent.caller) as tx:
            if renamed:
                await graphs.configure_graph(tx, "notes", GraphPatch(name="papers"), "test")
            else:
                await graphs.create_graph(tx, NewGraph("papers"))
            waiting = asyncio.create_task(configure(notes, GraphPatch(name="papers")))
            await eventually(lambda: is_somebody_waiting(owner))
        with pytest.raises(Conflict) as refused:
            await waiting
        assert refused.value.code is ErrorCode.GRAPH_EXISTS

    async def test_a_waiting_writer_is_bound_by_the_new_whitelist(
        self, agent: Agent, owner: asyncpg.Connection
    ) -> None:
        """And not by the whitelist at the time at which the writer started."""
        await agent.create("Ada")
        async with agent.db.transaction(agent.caller) as tx:
            await graphs.configure_graph(tx, "default", GraphPatch(kind_whitelist=("idea",)), "test")
            waiting = asyncio.create_task(put(agent, "x", kind="note"))
            await eventually(lambda: is_somebody_waiting(owner))
        with pytest.raises(InvalidInput) as refused:
            await waiting
        assert refused.value.code is ErrorCode.KIND_NOT_ALLOWED
        assert (await put(agent, "x", kind="idea")).created

    async def test_a_waiting_writer_with_an_allow_list_can_write(self, agent: Agent, owner: asyncpg.Connection) -> None:
        await agent.create("Ada")
        async with agent.db.transaction(agent.caller) as tx:
            graph = await graphs.configure_graph(tx, "default", GraphPatch(conflict_policy="manual"), "test")
            confined = replace(agent, caller=replace(agent.caller, graphs=frozenset([graph.id])))
            waiting = asyncio.create_task(put(confined, "x"))
            await eventually(lambda: is_somebody_waiting(owner))
        assert (await waiting).created
        with pytest.raises(Forbidden):
            await configure(confined, GraphPatch(conflict_policy="lww"))

    async def test_a_graph_is_renamed_to_a_free_name_only(self, agent: Agent) -> None:
        notes = await make(agent, NewGraph("notes"))
        await notes.create("Ada")
        renamed = await configure(agent, GraphPatch(name="papers"), "notes")
        assert names(await replace(agent, graph="papers").read()) == ["Ada"]
        assert names(await notes.read()) == []
        with pytest.raises(Conflict) as refused:
            await configure(agent, GraphPatch(name="default"), "papers")
        assert refused.value.code is ErrorCode.GRAPH_EXISTS
        with pytest.raises(NotFound):
            await configure(agent, GraphPatch(name="x"), "notes")
        assert renamed.name == "papers"


class TestDeletingAGraph:
    @pytest.fixture
    async def notes(self, agent: Agent) -> Agent:
        """A graph with a row in every table, both live and removed, and an edge from another graph."""
        notes = await make(agent, NewGraph("notes"))
        await notes.create(NewEntity("Ada", "person", ("writes programs", "likes tea")), "Grace", "Linus")
        await notes.relate(("Ada", "Grace", "knows"), ("Ada", "nobody yet", "awaits"))
        await notes.unobserve(("Ada", "likes tea"))
        await notes.delete("Linus")
        await notes.unrelate(("Ada", "Grace", "knows"))
        await notes.remember("bees make honey")
        return notes

    @pytest.mark.parametrize("at_once", [1, 2, 5_000])
    async def test_all_rows_of_a_graph_are_deleted_and_no_others(
        self, agent: Agent, notes: Agent, owner: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch, at_once: int
    ) -> None:
        monkeypatch.setattr(graphs, "DELETED_AT_ONCE", at_once)
        await agent.create(NewEntity("Ada", "person", ("stays",)))
        here, there = [(await one.open("Ada")).entities[0].id for one in (agent, notes)]
        spec = EdgeSpec(MemoryRef(here), MemoryRef(there), "is", to_graph="notes")
        async with agent.writing() as (tx, revision):
            await relating.put_edge(tx, revision, spec)
        kept, gone = [await owner.fetchval("SELECT graph_id FROM nodes WHERE id = $1", i) for i in (here, there)]
        before = await contents(owner, kept)
        assert all(count for table, count in (await contents(owner, gone)).items() if table != "aliases")
        assert await delete(agent, "notes")
        assert set((await contents(owner, gone)).values()) == {0}
        assert await owner.fetchval("SELECT count(*) FROM graphs WHERE id = $1", gone) == 0
        assert await contents(owner, kept) == before
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            (link,) = (await exploring.symlinks_of(await graphs.view(tx, None), offset=0, limit=10)).links
        assert (link.dangling, link.to_graph) == (True, None)
        assert not await delete(agent, "notes")
        await notes.create("Ada")
        assert (await notes.head()).revision == 1

    async def test_a_waiting_writer_creates_a_new_graph(
        self, agent: Agent, notes: Agent, owner: asyncpg.Connection
    ) -> None:
        async with agent.db.transaction(agent.caller) as tx:
            assert await graphs.delete_graph(tx, "notes", "test")
            waiting = asyncio.create_task(notes.create("new"))
            await eventually(lambda: is_somebody_waiting(owner))
        assert await waiting == ["new"]
        assert (names(await notes.read()), (await notes.head()).revision) == (["new"], 1)

    @pytest.mark.parametrize("gone", ["deleted", "renamed"])
    @pytest.mark.parametrize(
        "call",
        [
            lambda tx: compressed(tx, "notes"),
            lambda tx: archiving.archive_entities(tx, "notes", "test", ArchiveCriteria(tags=("old",)), dry_run=False),
            lambda tx: undoing.undo_changes(tx, "notes", "test", ChangeRange(0), dry_run=False),
        ],
        ids=["compress", "archive", "undo"],
    )
    async def test_waiting_curation_creates_no_new_graph_of_that_name(
        self,
        agent: Agent,
        notes: Agent,
        owner: asyncpg.Connection,
        call: Callable[[Transaction], Awaitable[object]],
        gone: str,
    ) -> None:
        async def curate() -> None:
            async with agent.db.transaction(agent.caller) as tx:
                await call(tx)

        await notes.create(*(NewEntity(name, "thing", ("writes programs",)) for name in ("Ada Lovelace", "Lovelace")))
        async with agent.db.transaction(agent.caller) as tx:
            if gone == "deleted":
                assert await graphs.delete_graph(tx, "notes", "test")
            else:
                await graphs.configure_graph(tx, "notes", GraphPatch(name="papers"), "test")
            waiting = asyncio.create_task(curate())
            await eventually(lambda: is_somebody_waiting(owner))
        with pytest.raises(Unavailable):
            await waiting
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            assert "notes" not in [graph.name for graph in await graphs.list_graphs(tx)]

    async def test_deletion_waits_for_a_writer(self, agent: Agent, notes: Agent, owner: asyncpg.Connection) -> None:
        async with notes.writing() as (tx, revision):
            waiting = asyncio.create_task(delete(agent, "notes"))
            await eventually(lambda: is_somebody_waiting(owner))
            await lineages.put_node(tx, revision, Draft(NodeFields(kind="note", content="x")))
            graph_id = revision.graph.id
        assert await waiting
        assert set((await contents(owner, graph_id)).values()) == {0}

    async def test_the_default_graph_of_a_valid_key_cannot_be_deleted(
        self, agent: Agent, notes: Agent, issue: NewApiKey
    ) -> None:
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            graph = await graphs.get_graph(tx, "notes")
        key = await issue(agent.caller, default_graph_id=graph.id)
        with pytest.raises(Conflict) as refused:
            await delete(agent, "notes")
        assert refused.value.code is ErrorCode.GRAPH_IN_USE
        assert names(await notes.read()) == ["Ada", "Grace"]
        async with agent.db.transaction(agent.caller) as tx:
            await identity.revoke_key(tx, key.key.id)
        assert await delete(agent, "notes")
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            (kept,) = [one for one in await identity.list_keys(tx) if one.id == key.key.id]
        assert kept.default_graph_id is None

    async def test_changes_cannot_be_deleted_on_their_own(self, agent: Agent, notes: Agent) -> None:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with agent.db.transaction(agent.caller) as tx:
                await tx.execute(Query.compile("DELETE FROM changes"))


class TestSubgraphs:
    async def put(
        self, agent: Agent, nodes: Sequence[NodeSpec], edges: Sequence[EdgeSpec]
    ) -> tuple[WrittenSubgraph, list[str]]:
        """Write a subgraph; return the result, and the beginnings of the statements that this took."""
        sent: list[str] = []
        async with agent.db.transaction(agent.caller) as tx:
            with tx._connection.query_logger(lambda record: sent.append(record.query)):
                async with graphs.write_graph(tx, agent.graph, "test") as revision:
                    written = await writing.put_subgraph(tx, revision, nodes, edges)
        # The driver reports a statement when the event loop turns next, so the list is read after the commit.
        return written, [query[:40] for query in sent]

    async def test_a_large_subgraph_sends_no_more_statements_than_a_small_one(
        self, agent: Agent, settings: Settings
    ) -> None:
        one_connection = settings.model_copy(update={"database_pool_size": 1})
        async with Database.connect(settings.database_url, settings=one_connection) as db:
            agent = replace(agent, db=db)
            known = [(await put(agent, f"known {n}")).node_id for n in range(25)]
            sent = {}
            for round_, size in (("first", 1), ("small", 1), ("large", 25)):
                fields = [NodeFields(kind="note", content=f"{round_} {n}") for n in range(size)]
                nodes = [NodeSpec(Draft(one, content_only=True), f"new {n}") for n, one in enumerate(fields)]
                nodes += [
                    NodeSpec(Draft(one, known[n], content_only=True), f"known {n}") for n, one in enumerate(fields)
                ]
                ends = [(MemoryRef(name=f"new {n}"), MemoryRef(name=f"known {n}")) for n in range(size)]
                ends += [(MemoryRef(known[n]), MemoryRef(name=f"new {n}")) for n in range(size)]
                edges = [EdgeSpec(source, target, round_) for source, target in ends]
                written, sent[round_] = await self.put(agent, nodes, edges)
                assert all(isinstance(one, PutOutcome) for one in written.nodes)
                assert all(isinstance(one, EdgeUpsert) for one in written.edges)
        assert sent["large"] == sent["small"]
        assert len(sent["small"]) <= 20

    async def test_a_subgraph_of_which_nothing_can_be_written_makes_no_revision(self, agent: Agent) -> None:
        await agent.create("Ada")
        lost = Draft(NodeFields(kind="note", content="x"), uuid4(), content_only=True)
        nowhere = EdgeSpec(MemoryRef(uuid4()), MemoryRef(uuid4()), "cites")
        written, _ = await self.put(agent, [NodeSpec(lost)], [nowhere])
        assert all(isinstance(one, RecollectError) for one in (*written.nodes, *written.edges))
        assert (await agent.head()).revision == 1

    async def test_placeholders_and_expired_nodes_cannot_be_ends_of_an_edge(
        self, agent: Agent, owner: asyncpg.Connection
    ) -> None:
        await agent.create("Ada", "Old")
        await agent.relate(("Ada", "nobody yet", "awaits"))
        find = "SELECT id FROM nodes WHERE tenant_id = $1 AND name = $2"
        ada, old, nobody = [
            await owner.fetchval(find, agent.caller.tenant_id, name) for name in ("Ada", "Old", "nobody yet")
        ]
        await owner.execute("UPDATE nodes SET expires_at = now() - interval '1 second' WHERE id = $1", old)
        edges = [EdgeSpec(MemoryRef(ada), MemoryRef(end), "knows") for end in (old, nobody)]
        edges += [EdgeSpec(MemoryRef(end), MemoryRef(ada), "knows") for end in (old, nobody)]
        written, _ = await self.put(agent, [], edges)
        assert [getattr(one, "code", None) for one in written.edges] == [ErrorCode.NODE_NOT_FOUND] * 4
