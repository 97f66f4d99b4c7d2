"""Group `duplicates`: how long a search for duplicates among all entities of a graph takes.

The graph is the hardest case: entities of one type with two statements of their own, one that all share, one tag out of
ten, and a name of two or three words; every tenth is a copy of another with a letter changed. A pass over it runs in
the steps of the job, on one core. The same run also measures how long comparing the names alone in full would take
(extrapolated from some rows), and how long reading the entities takes. The pass must find the copies.
"""

import random
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist
from rich.table import Table

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants.service import create_tenant
from recollect.caller import Caller
from recollect.curation.duplicates import deduplication, store
from recollect.curation.duplicates.model import ScanCursor
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.graphs.view import GraphView
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres

BATCH = 1_000
SAMPLED_ROWS = 256


@dataclass(frozen=True, slots=True)
class MeasuredPass:
    """One graph: seconds of the pass, of the core in it, of its slowest step, of reading, of all names; found pairs."""

    entities: int
    planted: int
    found: int
    steps: int
    seconds: float
    core_seconds: float
    slowest_step: float
    reading: float
    all_names: float


def crowd(size: int, chance: random.Random) -> tuple[list[NewEntity], int]:
    """The entities, and how many of them are copies with a letter changed."""
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(4, 9))) for _ in range(5_000)]
    made: dict[str, NewEntity] = {}
    originals: list[NewEntity] = []
    planted = 0
    while len(made) < size:
        if originals and chance.random() < 0.1:
            like = originals[chance.randrange(len(originals))]
            place = chance.randrange(len(like.name))
            name = like.name[:place] + chance.choice("0123456789") + like.name[place + 1 :]
            entity = NewEntity(name, "company", like.observations, like.tags)
            planted += name not in made
        else:
            name = " ".join(chance.sample(words, chance.randint(2, 3)))
            own = tuple(f"{chance.choice(words)} {chance.randrange(10**9)}" for _ in range(2))
            entity = NewEntity(name, "company", (*own, "is a company"), (f"tag {chance.randrange(10)}",))
            originals.append(entity)
        made.setdefault(entity.name, entity)
    return list(made.values()), planted


async def measure(url: str, settings: Settings, size: int) -> MeasuredPass:
    """Fill a graph of a new tenant, and run a pass over it."""
    async with Operator.connect(settings.migration_url, settings) as operator:
        caller = operator_caller(await create_tenant(operator, f"duplicates-{size}", "Benchmark"))
    crowded, planted = crowd(size, random.Random(size))
    async with Database.connect(settings.database_url, settings=settings) as db:
        await _fill(db, caller, crowded)
        await _tidy(url)
        names = [entity.name.lower() for entity in crowded]
        reading = await _seconds_of_reading(db, caller)
        seconds = [0.0]
        core = time.process_time()
        cursor: ScanCursor | None = None
        async with db.transaction(caller, read_only=True) as tx:
            graph_id = (await graphs.get_graph(tx, "companies")).id
        while len(seconds) == 1 or cursor is not None:
            begun = time.perf_counter()
            step, pairs = await deduplication.deduplicate(db, caller, graph_id, cursor)
            async with db.transaction(caller) as tx:
                cursor = (await deduplication.settle(tx, step, pairs)).cursor
            seconds.append(time.perf_counter() - begun)
        core = time.process_time() - core
        async with db.transaction(caller, read_only=True) as tx:
            graph = await graphs.get_graph(tx, "companies")
            stored = len(await store.list_duplicates(tx, graph, least=0, offset=0, limit=10**7))
    all_names = _seconds_of_all_names(names)
    slowest = max(seconds)
    return MeasuredPass(size, planted, stored, len(seconds) - 1, sum(seconds), core, slowest, reading, all_names)


async def _fill(db: Database, caller: Caller, crowded: Sequence[NewEntity]) -> None:
    async with db.transaction(caller) as tx:
        wanted = {"dedup": {"mode": "propose", "threshold": 0.8}}
        await graphs.create_graph(tx, NewGraph("companies", metadata=wanted))
    for start in range(0, len(crowded), BATCH):
        async with db.transaction(caller) as tx, graphs.write_graph(tx, "companies", "benchmark") as revision:
            await entities.create_entities(tx, revision, crowded[start : start + BATCH])


async def _tidy(url: str) -> None:
    superuser = await asyncpg.connect(url)
    await superuser.execute("VACUUM ANALYZE")
    await superuser.close()


async def _seconds_of_reading(db: Database, caller: Caller) -> float:
    async with db.transaction(caller, read_only=True) as tx:
        begun = time.perf_counter()
        await store.list_profiles(GraphView(tx, await graphs.get_graph(tx, "companies")))
        return time.perf_counter() - begun


def _seconds_of_all_names(names: Sequence[str]) -> float:
    """The seconds for comparing all pairs of names, extrapolated from some rows."""
    rows = names[: min(SAMPLED_ROWS, len(names))]
    begun = time.perf_counter()
    cdist(rows, names, scorer=Levenshtein.normalized_similarity)
    return (time.perf_counter() - begun) * len(names) / len(rows) / 2


async def measure_duplicates(sizes: Sequence[int], rows: list[MeasuredPass]) -> None:
    """Measure each size, all on one server, into `rows`, which are valid even if this ends early."""
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        postgres = LocalPostgres(Path(folder))
        postgres.start()
        try:
            await migrate(postgres.url())
            settings = Settings(
                database_url=postgres.url("recollect_app"), owner_database_url=postgres.url("recollect_owner")
            )
            for size in sizes:
                rows.append(await measure(postgres.url(), settings, size))
        finally:
            postgres.stop()


def duplicates_table(rows: Sequence[MeasuredPass]) -> Table:
    """The table of the measurements."""
    figures = ("pass s", "of a core s", "slowest step s", "reading s", "names s")
    table = Table("entities", "planted", "pairs found", "steps", *figures, title="Duplicates: a pass over a graph")
    for m in rows:
        counts = [f"{m.entities:,}", f"{m.planted:,}", f"{m.found:,}", str(m.steps)]
        seconds = [m.seconds, m.core_seconds, m.slowest_step, m.reading, m.all_names]
        table.add_row(*counts, *(f"{figure:.1f}" for figure in seconds))
    return table
