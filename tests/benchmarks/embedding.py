"""Group `embedding`: passages embedded per second by the worker, beside the bare embedder.

There are two graphs: entities with one observation each and no context, and talk in threads of twenty turns, which are
settled with the turns around them. Talk is also added to a graph that contains as much of it already, embedded and with
a vector index, into which each new vector goes: as many turns at once, and a tenth as many one by one, each of which is
written, embedded and settled, with the turns before it, whose words and vector it changes. The worker's job embeds them
as in a sweep; before and after, the bare embedder gets some of the same texts in batches of the same size. Core seconds
are the processor time of this process and of PostgreSQL.
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from rich import box
from rich.table import Table

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants.service import create_tenant
from recollect.caller import Caller
from recollect.embedding import Embedder, create_embedder
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.observations import service as observations
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.retrieval.vector_indexes.service import maintain_indexes
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.wakeups import Wakeups
from recollect_local.postgres import LocalPostgres
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import embedding
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.latency.talk import Talk, create_talk
from tests.benchmarks.processes import processor_seconds

EMBEDDERS = ("wordllama", "minilm", "multilingual")
"""The first at every size; the others at the smallest only, because their own pace dominates at any size."""

INDEXED, ONE_BY_ONE = "threads, indexed", "one by one, indexed"
SHAPES = ("observations", "threads", INDEXED, ONE_BY_ONE)

INDEX_FROM = 100
"""The number of memories from which a graph gets an index here."""

FILLED_AT_ONCE = 1_000
BARE_AT_MOST = 2_000
"""The maximum number of texts for the bare embedder, before and after."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The time of so many passages: seconds, and core seconds of this process and of PostgreSQL."""

    passages: int
    seconds: float
    core_seconds: float
    database_seconds: float

    @property
    def rate(self) -> float:
        """Passages per second."""
        return self.passages / self.seconds

    @property
    def core_rate(self) -> float:
        """Passages per core second, of this process and PostgreSQL together."""
        return self.passages / (self.core_seconds + self.database_seconds)


@dataclass(frozen=True, slots=True)
class MeasuredEmbedding:
    """The paces of the bare embedder, before and after, and of the worker, on one graph."""

    embedder: str
    shape: str
    bare: tuple[Pace, Pace]
    worker: Pace

    def share(self, of: Callable[[Pace], float]) -> float:
        """The worker's pace divided by the mean pace of the bare embedder."""
        return of(self.worker) / (sum(of(pace) for pace in self.bare) / 2)


async def measure_embedding(sizes: Sequence[int], rows: list[MeasuredEmbedding]) -> None:
    """Measure each embedder, shape and size, on one server, into `rows`, which are valid even if this ends early."""
    talk, corpus = await create_talk(), Corpus()
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        postgres = LocalPostgres(Path(folder))
        postgres.start()
        try:
            await migrate(postgres.url())
            settings = Settings(
                database_url=postgres.url("recollect_app"), owner_database_url=postgres.url("recollect_owner")
            )
            for name in EMBEDDERS:
                embedder = create_embedder(settings.model_copy(update={"embedder": name}))
                for size in sizes if name == EMBEDDERS[0] else sizes[:1]:
                    for shape in SHAPES:
                        bench = _Bench(postgres, settings, embedder, talk, corpus)
                        rows.append(await bench.measure(name, shape, size))
                await embedder.close()
        finally:
            postgres.stop()


def embedding_table(rows: Sequence[MeasuredEmbedding]) -> Table:
    """The table of the measurements."""
    table = Table(
        box=box.SIMPLE,
        title="Embedding: passages a second, and a second of a core",
        caption="bare: the embedder alone, on the same texts, in the same run. PG: its share of the worker's cores.",
    )
    figures = ("bare / s", "worker / s", "of it", "bare / core", "worker / core", "of it", "PG")
    for column in ("embedder", "graph", "passages", *figures):
        table.add_column(column, justify="left" if column in ("embedder", "graph") else "right", no_wrap=True)
    for row in rows:
        worker = row.worker
        of_database = worker.database_seconds / (worker.core_seconds + worker.database_seconds)
        table.add_row(
            row.embedder,
            row.shape,
            f"{worker.passages:,}",
            *_beside(row, lambda pace: pace.rate),
            *_beside(row, lambda pace: pace.core_rate),
            f"{of_database:.0%}",
        )
    return table


def _beside(row: MeasuredEmbedding, of: Callable[[Pace], float]) -> tuple[str, str, str]:
    share = row.share(of)
    return f"{of(row.worker) / share:,.0f}", f"{of(row.worker):,.0f}", f"{share:.0%}"


@dataclass(frozen=True, slots=True)
class _Bench:
    postgres: LocalPostgres
    settings: Settings
    embedder: Embedder
    talk: Talk
    corpus: Corpus

    async def measure(self, name: str, shape: str, size: int) -> MeasuredEmbedding:
        """Measure a graph of that shape and size, of a new tenant."""
        async with Operator.connect(self.settings.migration_url, self.settings) as operator:
            caller = operator_caller(
                await create_tenant(
                    operator, f"{name}-{shape.replace(', ', '-').replace(' ', '-')}-{size}", "Benchmark"
                )
            )
        async with (
            connect_redis(self.settings) as redis,
            Database.connect(self.settings.database_url, settings=self.settings) as db,
        ):
            wakeups = Wakeups(redis)
            context = WorkerContext(self.settings, db, self.embedder, wakeups, asyncio.Event())
            first = 0
            if shape in (INDEXED, ONE_BY_ONE):
                await self._fill(db, caller, shape, range(size))
                await _work(context, caller)
                await self._index()
                first = size
            added = range(first, first + (size // 10 if shape == ONE_BY_ONE else size))
            if shape != ONE_BY_ONE:
                await self._fill(db, caller, shape, added)

            async def work() -> None:
                for number in added if shape == ONE_BY_ONE else ():
                    await self._fill(db, caller, shape, range(number, number + 1))
                    await _work(context, caller)
                await _work(context, caller)

            texts = await self._texts(caller)
            await self.embedder.embed(texts[:64])
            before = await self._paced(len(texts), lambda: self._embed(texts))
            worked = await self._paced(len(added), work)
            after = await self._paced(len(texts), lambda: self._embed(texts))
            await wakeups.aclose()
        return MeasuredEmbedding(name, shape, (before, after), worked)

    async def _index(self) -> None:
        """Create the vector indexes of all graphs that are large enough."""
        async with Operator.connect(self.settings.migration_url, self.settings) as operator:
            built = await maintain_indexes(operator, from_memories=INDEX_FROM, memory_mb=512)
        assert built, "no graph was given an index"

    async def _fill(self, db: Database, caller: Caller, shape: str, numbers: range) -> None:
        for start in range(numbers.start, numbers.stop, FILLED_AT_ONCE):
            await self._write(db, caller, shape, range(start, min(numbers.stop, start + FILLED_AT_ONCE)))

    async def _write(self, db: Database, caller: Caller, shape: str, numbers: range) -> None:
        async with db.transaction(caller) as tx, graphs.write_graph(tx, None, "fill") as revision:
            if shape == "observations":
                await entities.create_entities(tx, revision, [self.corpus.entity(number) for number in numbers])
            else:
                turns = [self.talk.turn(number) for number in numbers]
                people = dict.fromkeys(turn.entity for turn in turns)
                await entities.create_entities(tx, revision, [NewEntity(name, "person") for name in people])
                await observations.add_observations(tx, revision, turns, across_threads=False)

    async def _texts(self, caller: Caller) -> list[str]:
        """The texts for the bare embedder, among those to embed. Statistics are updated before."""
        superuser = await asyncpg.connect(self.postgres.url(), server_settings={"search_path": "recollect, public"})
        try:
            await superuser.execute("VACUUM ANALYZE")
            await superuser.execute("CHECKPOINT")
            rows = await superuser.fetch(
                "SELECT n.name || ': ' || p.text AS text FROM passages p JOIN nodes n ON n.id = p.node_id "
                "WHERE p.tenant_id = $1 AND p.removed_revision IS NULL ORDER BY p.id DESC LIMIT $2",
                caller.tenant_id,
                BARE_AT_MOST,
            )
        finally:
            await superuser.close()
        return [row["text"] for row in rows]

    async def _embed(self, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), self.settings.embedding_batch):
            await self.embedder.embed(texts[start : start + self.settings.embedding_batch])

    async def _paced(self, passages: int, work: Callable[[], Awaitable[None]]) -> Pace:
        begun, core, database = time.perf_counter(), time.process_time(), self._database_seconds()
        await work()
        seconds = time.perf_counter() - begun
        return Pace(passages, seconds, time.process_time() - core, self._database_seconds() - database)

    def _database_seconds(self) -> float:
        """The processor time of all processes of PostgreSQL."""
        assert self.postgres.pid is not None
        return processor_seconds(self.postgres.pid)


async def _work(context: WorkerContext, caller: Caller) -> None:
    while await embedding.embed_passages(context, caller.tenant_id, {}):
        pass
