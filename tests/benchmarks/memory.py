"""The measured tenant: it is created, filled through the core, and brought back to its size after each write."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import asyncpg
from rich.progress import Progress

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey, operator_caller
from recollect.accounts.tenants.service import create_tenant, find_tenant
from recollect.caller import Caller
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import service as nodes
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import NewObservation
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewEdge
from recollect.ids import new_id
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.retrieval.vector_indexes import service as upkeep
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.latency.talk import Spoken
from tests.benchmarks.settling import PENDING, PENDING_OF, settle
from tests.benchmarks.stack import Stack
from tests.benchmarks.web import ROW, TYPE, Web

BATCH = 1_000

SLUG = "benchmark"
"""The slug of the measured tenant."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A state to return to: all later ids are greater, and `head` is the revision of the graph."""

    last_id: UUID
    head: asyncpg.Record


class MeasuredMemory:
    """The default graph of a tenant, which grows from size to size."""

    def __init__(self, stack: Stack, caller: Caller, key: str, superuser: asyncpg.Connection) -> None:
        self.key, self.caller = key, caller
        self.entities = 0
        self._stack, self._superuser = stack, superuser

    async def grow(self, corpus: Corpus, size: int, progress: Progress, *, embedded: bool = True) -> None:
        """Add entities up to `size`, wait until every passage has its vector, and update statistics.

        If not `embedded`, it does not wait for vectors, which searches for texts do not need.
        """
        async with _waking_database(self._stack.settings) as db:
            await self._add_up_to(size, BATCH, lambda numbers: self._fill(db, corpus, numbers), progress)
        if embedded:
            await self.embedded(progress)
        await self._tidy()

    async def listen(self, talk: Spoken, size: int, progress: Progress) -> None:
        """Add turns of talk up to `size` (each is one passage), wait for their vectors, index them where the graph is
        large enough, and bring statistics up to date.

        `entities` counts turns then.
        """
        await self.hear(talk, size, progress)
        await self.embedded(progress)
        await self.indexed(size, progress)
        await self._tidy()

    async def hear(self, talk: Spoken, size: int, progress: Progress) -> None:
        """Add turns of talk up to `size`, and do nothing else."""
        async with _waking_database(self._stack.settings) as db:
            await self._add_up_to(size, BATCH, lambda numbers: self._add_turns(db, talk, numbers), progress)

    async def waiting(self) -> int:
        """The number of passages that are not completely indexed."""
        return int(await self._superuser.fetchval(PENDING, self.caller.tenant_id))

    async def waiting_links(self) -> int:
        """The number of facts that still have to be related to similar entities."""
        queued = "SELECT count(*) FROM autolinks WHERE tenant_id = $1"
        return int(await self._superuser.fetchval(queued, self.caller.tenant_id))

    async def waiting_of(self, memory_ids: Sequence[UUID]) -> int:
        """The number of passages of these memories, of any tenant, that are not completely indexed."""
        return int(await self._superuser.fetchval(PENDING_OF, memory_ids))

    async def weave(self, web: Web, size: int, progress: Progress) -> None:
        """Add rows of a web up to `size` entities. It does not wait for vectors, which walks do not use."""
        async with Database.connect(self._stack.settings.database_url, settings=self._stack.settings) as db:
            await self._add_up_to(size, ROW, lambda numbers: self._add_row(db, web, numbers), progress)
        await self._tidy()

    async def mark(self) -> Mark:
        """Record the current state."""
        head = await self._superuser.fetchrow("SELECT * FROM graph_heads WHERE tenant_id = $1", self.caller.tenant_id)
        assert head is not None
        mark = Mark(new_id(), head)
        await asyncio.sleep(0.002)  # Ids begin with the millisecond: those of other processes are greater from now on.
        return mark

    async def bytes_per_passage(self) -> dict[str, float]:
        """The average size of the rows of a passage, without indexes, by table."""
        count = await self._superuser.fetchval(
            "SELECT count(*) FROM passages WHERE tenant_id = $1", self.caller.tenant_id
        )
        return {
            table: (
                await self._superuser.fetchval(
                    f"SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM {table} t WHERE tenant_id = $1",
                    self.caller.tenant_id,
                )
            )
            / max(1, count)
            for table in ("passages", "searched_vectors", "passage_vectors", "passage_evidence")
        }

    async def stored_bytes(self) -> int:
        """What all tables take on the disk, with their indexes and what is stored apart from them."""
        return int(await self._superuser.fetchval(_STORED))

    async def return_to(self, mark: Mark) -> None:
        """Delete everything that was added since, so that each sample has the same graph."""
        async with self._superuser.transaction():
            for table, column in _ID_COLUMNS.items():
                await self._superuser.execute(
                    f"DELETE FROM {table} WHERE tenant_id = $1 AND {column} > $2", self.caller.tenant_id, mark.last_id
                )
            await self._superuser.execute(
                "DELETE FROM changes WHERE tenant_id = $1 AND graph_id = $2 AND revision > $3",
                self.caller.tenant_id,
                mark.head["graph_id"],
                mark.head["revision"],
            )
            await self._superuser.execute(
                "UPDATE graph_heads SET revision = $3, entities = $4, observations = $5 "
                "WHERE tenant_id = $1 AND graph_id = $2",
                *(mark.head[name] for name in ("tenant_id", "graph_id", "revision", "entities", "observations")),
            )

    async def _add_up_to(
        self, size: int, batch: int, add: Callable[[range], Awaitable[None]], progress: Progress
    ) -> None:
        filling = progress.add_task(f"{size:,}: filling", total=size - self.entities)
        while self.entities < size:
            added = min(batch, size - self.entities)
            await add(range(self.entities, self.entities + added))
            self.entities += added
            progress.advance(filling, added)

    async def _fill(self, db: Database, corpus: Corpus, numbers: range) -> None:
        async with (
            db.transaction(self.caller) as tx,
            graphs.write_graph(tx, None, "benchmark") as revision,
        ):
            await entities.create_entities(tx, revision, [corpus.entity(number) for number in numbers])
            await relations.create_relations(tx, revision, [corpus.relation(number) for number in numbers if number])

    async def _add_turns(self, db: Database, talk: Spoken, numbers: range) -> None:
        turns = [talk.turn(number) for number in numbers]
        async with (
            db.transaction(self.caller) as tx,
            graphs.write_graph(tx, None, "benchmark") as revision,
        ):
            people = dict.fromkeys(turn.entity for turn in turns)
            await entities.create_entities(tx, revision, [NewEntity(name, "person") for name in people])
            await observations.add_observations(tx, revision, turns, across_threads=False)

    async def _add_row(self, db: Database, web: Web, numbers: range) -> None:
        async with (
            db.transaction(self.caller) as tx,
            graphs.write_graph(tx, None, "benchmark") as revision,
        ):
            ids = await nodes.create_nodes(tx, revision, [web.fields(number) for number in numbers])
            said = [NewObservation(web.name(number), web.sentence(number)) for number in numbers]
            await observations.add_observations(tx, revision, said)
            ends = [pair for number, i in zip(numbers, ids, strict=True) for pair in web.add(number, i)]
            await relations.put_edges(tx, revision, [NewEdge(source, target, TYPE) for source, target in ends])

    async def indexed(self, size: int, progress: Progress) -> None:
        """Create the vector index if there are enough vectors, instead of waiting a minute for a worker to do so."""
        indexing = progress.add_task(f"{size:,}: vector index", total=1)
        patient = self._stack.settings.model_copy(update={"statement_timeout_seconds": 0.0})
        async with Operator.connect(patient.migration_url, patient) as operator:
            await upkeep.maintain_indexes(
                operator, from_memories=patient.vector_index_memories, memory_mb=patient.vector_index_memory_mb
            )
        progress.advance(indexing)

    async def _tidy(self) -> None:
        # As autovacuum does after a minute; otherwise the first searches would clean up after the filling.
        await self._superuser.execute("VACUUM ANALYZE")
        await self._superuser.execute("CHECKPOINT")

    async def embedded(self, progress: Progress) -> None:
        """Wait until all passages are embedded and words are counted; raises RuntimeError if the worker ended."""
        settings = self._stack.settings
        async with Database.connect(settings.database_url, settings=settings) as db:
            await settle(db, self.caller, self._stack.worker, progress, f"{self.entities:,}: embedding")


@asynccontextmanager
async def _waking_database(settings: Settings) -> AsyncIterator[Database]:
    async with AsyncExitStack() as stack:
        redis = connect_redis(settings)
        stack.push_async_callback(redis.aclose)
        wakeups = Wakeups(redis)
        stack.push_async_callback(wakeups.aclose)
        yield await stack.enter_async_context(
            Database.connect(settings.database_url, settings=settings, on_commit=wakeups.notify)
        )


_STORED = """
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
    WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind = 'r'"""

_ID_COLUMNS = {
    "passage_evidence": "passage_id",
    "searched_vectors": "passage_id",
    "passage_vectors": "passage_id",
    "passages": "id",
    "observations": "id",
    "relations": "id",
    "node_versions": "node_id",
    "nodes": "id",
}


async def new_tenant(settings: Settings, slug: str = SLUG) -> tuple[Caller, str]:
    """Create a tenant in a database, which is migrated if it is new; also returns the secret of an agent's key."""
    await migrate(settings.migration_url)
    async with Operator.connect(settings.migration_url, settings) as operator:
        caller = operator_caller(await create_tenant(operator, slug, "Benchmark"))
    async with Database.connect(settings.database_url, settings=settings) as db, db.transaction(caller) as tx:
        pepper = settings.key_secret.get_secret_value().encode()
        issued = await identity.create_key(tx, NewKey(name="benchmark"), pepper=pepper)
    return caller, issued.secret


async def kept_tenant(settings: Settings) -> Caller:
    """The tenant that an earlier run, or this one, created in the database."""
    async with Operator.connect(settings.migration_url, settings) as operator:
        return operator_caller(await find_tenant(operator, SLUG))


@asynccontextmanager
async def measured_memory(stack: Stack) -> AsyncIterator[MeasuredMemory]:
    """A tenant in a new, migrated database, with an agent's key."""
    caller, key = await new_tenant(stack.settings)
    superuser = await asyncpg.connect(
        stack.superuser_url,
        # Rows are deleted by their ids in all tables at once, so no trigger needs to search for references to them.
        server_settings={"search_path": "recollect, public", "session_replication_role": "replica"},
    )
    try:
        yield MeasuredMemory(stack, caller, key, superuser)
    finally:
        await superuser.close()
