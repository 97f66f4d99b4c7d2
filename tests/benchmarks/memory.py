"""The tenant that is measured: made, filled through the core, and brought back to its size after each write."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import asyncpg
from rich.progress import Progress

from recollect.caller import Caller
from recollect.graphs import service as graphs
from recollect.identity import service as identity
from recollect.identity.model import NewKey, operator_caller
from recollect.ids import new_id
from recollect.nodes import service as nodes
from recollect.nodes.model import NewObservation
from recollect.platform.cache import connect_redis
from recollect.platform.db import Database, Operator
from recollect.platform.migrate import migrate
from recollect.platform.queue import Wakeups
from recollect.relations import service as relations
from recollect.relations.model import NewEdge
from recollect.settings import Settings
from recollect.tenants.service import create_tenant
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.stack import Stack
from tests.benchmarks.web import ROW, TYPE, Web

BATCH = 1_000

_PENDING = "SELECT count(*) FROM passages WHERE embedding IS NULL AND removed_revision IS NULL"


@dataclass(frozen=True, slots=True)
class Mark:
    """A state to come back to: every id made later is greater, and this was the graph's head."""

    last_id: UUID
    head: asyncpg.Record


class MeasuredMemory:
    """One tenant's default graph, which grows from size to size."""

    def __init__(self, stack: Stack, caller: Caller, key: str, superuser: asyncpg.Connection) -> None:
        self.key = key
        self.entities = 0
        self._stack, self._caller, self._superuser = stack, caller, superuser

    async def grow(self, corpus: Corpus, size: int, progress: Progress) -> None:
        """Add entities up to `size`, wait until every passage has its vector, and bring statistics up to date."""
        filling = progress.add_task(f"{size:,} entities: filling", total=size - self.entities)
        async with _waking_database(self._stack.settings) as db:
            while self.entities < size:
                added = min(BATCH, size - self.entities)
                await self._fill(db, corpus, range(self.entities, self.entities + added))
                self.entities += added
                progress.advance(filling, added)
        await self._embedded(size, progress)
        await self._tidy()

    async def weave(self, web: Web, size: int, progress: Progress) -> None:
        """Add rows of a web up to `size` entities. Their vectors are not waited for: who walks looks at none."""
        filling = progress.add_task(f"{size:,} entities: filling", total=size - self.entities)
        async with Database.connect(self._stack.settings.database_url, settings=self._stack.settings) as db:
            while self.entities < size:
                added = min(ROW, size - self.entities)
                await self._add_row(db, web, range(self.entities, self.entities + added))
                self.entities += added
                progress.advance(filling, added)
        await self._tidy()

    async def mark(self) -> Mark:
        """Remember the present state."""
        head = await self._superuser.fetchrow("SELECT * FROM graph_heads WHERE tenant_id = $1", self._caller.tenant_id)
        assert head is not None
        mark = Mark(new_id(), head)
        await asyncio.sleep(0.002)  # Ids begin with the millisecond: those of other processes are greater from now on.
        return mark

    async def return_to(self, mark: Mark) -> None:
        """Take what was added since out of the tables, so that each sample finds the same graph."""
        async with self._superuser.transaction():
            for table, column in _ID_COLUMNS.items():
                await self._superuser.execute(
                    f"DELETE FROM {table} WHERE tenant_id = $1 AND {column} > $2", self._caller.tenant_id, mark.last_id
                )
            await self._superuser.execute(
                "DELETE FROM changes WHERE tenant_id = $1 AND graph_id = $2 AND revision > $3",
                self._caller.tenant_id,
                mark.head["graph_id"],
                mark.head["revision"],
            )
            await self._superuser.execute(
                "UPDATE graph_heads SET revision = $3, entities = $4, observations = $5 "
                "WHERE tenant_id = $1 AND graph_id = $2",
                *(mark.head[name] for name in ("tenant_id", "graph_id", "revision", "entities", "observations")),
            )

    async def _fill(self, db: Database, corpus: Corpus, numbers: range) -> None:
        async with (
            db.transaction(self._caller) as tx,
            graphs.write_graph(tx, None, "benchmark") as revision,
        ):
            await nodes.create_entities(tx, revision, [corpus.entity(number) for number in numbers])
            await relations.create_relations(tx, revision, [corpus.relation(number) for number in numbers if number])

    async def _add_row(self, db: Database, web: Web, numbers: range) -> None:
        async with (
            db.transaction(self._caller) as tx,
            graphs.write_graph(tx, None, "benchmark") as revision,
        ):
            ids = await nodes.create_nodes(tx, revision, [web.fields(number) for number in numbers])
            said = [NewObservation(web.name(number), web.sentence(number)) for number in numbers]
            await nodes.add_observations(tx, revision, said)
            ends = [pair for number, i in zip(numbers, ids, strict=True) for pair in web.add(number, i)]
            await relations.put_edges(tx, revision, [NewEdge(source, target, TYPE) for source, target in ends])

    async def _tidy(self) -> None:
        # What autovacuum does within its minute; without it the first searches would tidy up after the filling.
        await self._superuser.execute("VACUUM ANALYZE")
        await self._superuser.execute("CHECKPOINT")

    async def _embedded(self, size: int, progress: Progress) -> None:
        waiting = int(await self._superuser.fetchval(_PENDING))
        embedding = progress.add_task(f"{size:,} entities: embedding", total=waiting)
        while left := int(await self._superuser.fetchval(_PENDING)):
            progress.update(embedding, completed=waiting - left)
            if not self._stack.worker.is_running():
                raise RuntimeError(f"The worker ended; its log: {self._stack.worker.log.read_text()[-2000:]}")
            await asyncio.sleep(0.5)
        progress.update(embedding, completed=waiting)


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


_ID_COLUMNS = {"passages": "id", "observations": "id", "relations": "id", "node_versions": "node_id", "nodes": "id"}


@asynccontextmanager
async def measured_memory(stack: Stack) -> AsyncIterator[MeasuredMemory]:
    """A tenant in a new, migrated database, with an agent's key."""
    settings = stack.settings
    await migrate(settings.migration_url)
    async with Operator.connect(settings.migration_url, settings) as operator:
        caller = operator_caller(await create_tenant(operator, "benchmark", "Benchmark"))
    async with Database.connect(settings.database_url, settings=settings) as db, db.transaction(caller) as tx:
        issued = await identity.create_key(
            tx, NewKey(name="benchmark"), pepper=settings.key_secret.get_secret_value().encode()
        )
    superuser = await asyncpg.connect(
        stack.superuser_url,
        # Rows are taken out by their ids in all tables at once: no trigger need look for what refers to them.
        server_settings={"search_path": "recollect, public", "session_replication_role": "replica"},
    )
    try:
        yield MeasuredMemory(stack, caller, issued.secret, superuser)
    finally:
        await superuser.close()
