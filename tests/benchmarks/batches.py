"""Group `batches`: what importing n items of one thing takes, for each item, as n grows.

One thing: the observations of one entity, the relations of one type at one hub (as their origin, and as their target),
the facts of one thread, entities with one tag. Each file is imported twice, so that all of it is known the second time.
The database is young: each size has a tenant of its own, and nothing gathers statistics of its tables in between. What
counts is the ratio to the smallest size of the same run; it is 1 where the time grows as n does.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.table import Table

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants.service import create_tenant
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.transfer import service as transfer
from recollect.transfer.batches import read_batches
from recollect.transfer.model import Strategy
from recollect_local.postgres import LocalPostgres

GRAPH = "batches"


@dataclass(frozen=True, slots=True)
class MeasuredBatch:
    """One import of n items of one thing: microseconds for each item, new and known."""

    thing: str
    items: int
    new: float
    known: float


def _observations(count: int) -> Iterator[object]:
    texts = [f"observation {n} of one entity" for n in range(count)]
    yield {"type": "entity", "name": "one", "entityType": "thing", "observations": texts}


def _outgoing(count: int) -> Iterator[object]:
    return ({"type": "relation", "from": "hub", "to": f"leaf {n}", "relationType": "next"} for n in range(count))


def _incoming(count: int) -> Iterator[object]:
    return ({"type": "relation", "from": f"leaf {n}", "to": "hub", "relationType": "next"} for n in range(count))


def _thread(count: int) -> Iterator[object]:
    yield {"facts": [{"text": f"turn {n} of a talk", "thread": "talk"} for n in range(count)]}


def _tag(count: int) -> Iterator[object]:
    for n in range(count):
        yield {"type": "entity", "name": f"tagged {n}", "entityType": "thing", "observations": [], "tags": ["one"]}


THINGS: dict[str, Callable[[int], Iterator[object]]] = {
    "observations of one entity": _observations,
    "relations from one hub": _outgoing,
    "relations to one hub": _incoming,
    "facts of one thread": _thread,
    "entities with one tag": _tag,
}
"""The records of a file, by what they have in common."""

FORMATS: dict[Callable[[int], Iterator[object]], str] = {_thread: "json"}
"""The format of the file, where it is not JSON lines: these hold no facts."""


async def measure_batches(sizes: Sequence[int], rows: list[MeasuredBatch]) -> None:
    """Measure each size of each thing, on one server, into `rows`, which are valid even if this ends early."""
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        postgres = LocalPostgres(Path(folder), settings={"autovacuum": "off"})
        postgres.start()
        try:
            await migrate(postgres.url())
            settings = Settings(
                database_url=postgres.url("recollect_app"), owner_database_url=postgres.url("recollect_owner")
            )
            for number, thing in enumerate(THINGS):
                for size in sizes:
                    rows.append(await _measure(settings, f"batches-{number}-{size}", thing, size))
        finally:
            postgres.stop()


async def _measure(settings: Settings, slug: str, thing: str, size: int) -> MeasuredBatch:
    async with Operator.connect(settings.migration_url, settings) as operator:
        caller = operator_caller(await create_tenant(operator, slug, "Benchmark"))
    records = THINGS[thing]
    file, format_name = b"\n".join(map(msgspec.json.encode, records(size))), FORMATS.get(records, "jsonl")
    async with Database.connect(settings.database_url, settings=settings) as db:
        new, known = [await _seconds_of_import(db, caller, format_name, file) for _ in range(2)]
    return MeasuredBatch(thing, size, new / size * 1e6, known / size * 1e6)


async def _seconds_of_import(db: Database, caller: Caller, format_name: str, file: bytes) -> float:
    begun = time.perf_counter()
    for batch in read_batches(format_name, [file]):
        assert not batch.problems
        async with db.transaction(caller) as tx:
            await transfer.import_batch(tx, GRAPH, batch.items, Strategy.MERGE)
    return time.perf_counter() - begun


def batches_table(rows: Sequence[MeasuredBatch]) -> Table:
    """The table of the measurements, with ratios to the smallest size."""
    table = Table("", "n", "new µs", "ratio", "known µs", "ratio", title="Batches: an item of n of one thing")
    first: dict[str, MeasuredBatch] = {}
    for m in rows:
        least = first.setdefault(m.thing, m)
        ratios = [m.new / least.new, m.known / least.known]
        table.add_row(m.thing, f"{m.items:,}", f"{m.new:.0f}", f"{ratios[0]:.2f}", f"{m.known:.0f}", f"{ratios[1]:.2f}")
    return table
