"""Group `transfer`: how many entities and relations per second imports write and exports read, and their memory.

Each runs in its own process, which gives its own peak of memory: resident before, and the maximum. An import reads a
file, the first one the corpus as JSON (see `corpus.py`), in batches, each a revision, without embedding its passages.
Creating that file is not measured.
"""

import asyncio
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID

import msgspec
import psutil
from rich import box
from rich.console import Console
from rich.table import Table

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants.service import create_tenant
from recollect.caller import Caller, Scope
from recollect.postgres.database import Database
from recollect.postgres.migrate import migrate
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.transfer import exports
from recollect.transfer import service as transfer
from recollect.transfer.batches import read_batches
from recollect.transfer.formats import FORMATS
from recollect.transfer.model import Strategy
from recollect.transfer.records import EntityRecord, RelationRecord
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.stack import Stack

GRAPH = "transfer"
MADE = "made.json"
"""The file that the first import reads."""
READ = ("csv", "graphml")
"""The formats whose exported file is also imported."""
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class MeasuredTransfer:
    """One import or export: rows are entities and relations; memory in MiB, before and at the peak."""

    doing: str
    entities: int
    rows: int
    megabytes: float
    seconds: float
    resident: float
    peak: float


@dataclass(frozen=True, slots=True)
class Step:
    """An import into a graph or an export of a graph, in a format, from or to a file."""

    doing: str
    format_name: str
    graph: str
    file: str


def steps(folder: Path) -> list[Step]:
    """The steps: import a graph from JSON, export it in every format, and import the files again into new graphs."""
    return [
        Step("import", "json", GRAPH, str(folder / MADE)),
        *(Step("export", name, GRAPH, str(folder / f"export.{name}")) for name in FORMATS),
        *(Step("import", name, f"from-{name}", str(folder / f"export.{name}")) for name in READ),
    ]


async def measured(stack: Stack, caller: Caller, step: Step, entities: int) -> MeasuredTransfer:
    """Run the step in a separate process."""
    given = msgspec.json.encode([stack.settings.database_url, str(caller.tenant_id), step, entities]).decode()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.benchmarks.transfer", given, stdout=asyncio.subprocess.PIPE
    )
    try:
        out, _ = await process.communicate()
    finally:
        if process.returncode is None:  # the time is up
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError(f"{step.doing} {step.format_name} failed")
    return msgspec.json.decode(out, type=MeasuredTransfer)


async def measure_transfer(
    stack: Stack, folder: Path, sizes: Sequence[int], rows: list[MeasuredTransfer], console: Console
) -> None:
    """Measure all steps with a graph of each size, into `rows`, which are valid even if this ends early."""
    await migrate(stack.settings.migration_url)
    for entities in sizes:
        async with Operator.connect(stack.settings.migration_url, stack.settings) as operator:
            caller = operator_caller(await create_tenant(operator, f"transfer-{entities}", "Transfer"))
        make_file(folder / MADE, entities)
        for step in steps(folder):
            rows.append(await measured(stack, caller, step, entities))
            console.print(f"{entities:,} entities: {rows[-1].doing}")


def transfer_table(rows: Sequence[MeasuredTransfer]) -> Table:
    """The table of the measurements."""
    shown = Table(
        box=box.SIMPLE,
        title="Import and export: entities and relations a second",
        caption="One process on one connection. MiB: resident before it began, and at most until it ended.",
    )
    for column in ("", "entities", "rows", "MB", "seconds", "rows/s", "MiB before", "at most"):
        shown.add_column(column, justify="right" if column else "left", no_wrap=True)
    for row in rows:
        shown.add_row(
            row.doing,
            f"{row.entities:,}",
            f"{row.rows:,}",
            f"{row.megabytes:.1f}",
            f"{row.seconds:.1f}",
            f"{row.rows / row.seconds:,.0f}",
            f"{row.resident:.0f}",
            f"{row.peak:.0f}",
        )
    return shown


def make_file(path: Path, entities: int) -> None:
    """Write the corpus as a JSON file."""
    corpus = Corpus()
    with path.open("wb") as file:
        for part, first in (("entities", 0), ("relations", 1)):
            file.write(f'{"{" if part == "entities" else "],"}"{part}":['.encode())
            for number in range(first, entities):
                record = _entity(corpus, number) if part == "entities" else _relation(corpus, number)
                file.write((b"" if number == first else b",\n") + msgspec.json.encode(record))
        file.write(b"]}")


def _entity(corpus: Corpus, number: int) -> EntityRecord:
    entity = corpus.entity(number)
    return EntityRecord(name=entity.name, entity_type=entity.kind or "", observations=list(entity.observations))


def _relation(corpus: Corpus, number: int) -> RelationRecord:
    edge = corpus.relation(number)
    return RelationRecord(from_=edge.source, to=edge.target, relation_type=edge.type)


async def _import(db: Database, caller: Caller, step: Step) -> int:
    rows = 0
    with open(step.file, "rb") as file:  # noqa: ASYNC230 - nothing else runs in this process
        for batch in read_batches(step.format_name, iter(lambda: file.read(_CHUNK), b"")):
            async with db.transaction(caller) as tx:
                await transfer.import_batch(tx, step.graph, batch.items, Strategy.SKIP)
            rows += len(batch.items)
    return rows


async def _export(db: Database, caller: Caller, step: Step) -> None:
    async with db.transaction(caller, read_only=True) as tx:
        export = await exports.open_export(tx, step.graph, step.format_name)
    with open(step.file, "wb") as file:  # noqa: ASYNC230 - likewise
        async for chunk in exports.export_chunks(db, caller, export):
            file.write(chunk)


async def _take(url: str, tenant: str, step: Step, entities: int) -> MeasuredTransfer:
    caller = Caller(UUID(tenant), "benchmark", "benchmark", frozenset(Scope))
    async with _database(url) as db:
        resident, start, rows = _resident(), time.perf_counter(), 2 * entities - 1
        if step.doing == "export":
            await _export(db, caller, step)
        else:
            rows = await _import(db, caller, step)
        seconds = time.perf_counter() - start
    megabytes = os.path.getsize(step.file) / 1e6  # noqa: ASYNC240 - likewise
    return MeasuredTransfer(f"{step.doing} {step.format_name}", entities, rows, megabytes, seconds, resident, _peak())


@asynccontextmanager
async def _database(url: str) -> AsyncIterator[Database]:
    async with Database.connect(url, settings=Settings(database_url=url)) as db:
        await db.ping()
        yield db


def _resident() -> float:
    return float(psutil.Process().memory_info().rss) / 2**20


def _peak() -> float:
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # in bytes, on macOS
    # On Linux, ru_maxrss begins with the memory of the process before exec, which is that of its parent.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


if __name__ == "__main__":
    of_url, of_tenant, of_step, of_entities = msgspec.json.decode(sys.argv[1], type=tuple[str, str, Step, int])
    sys.stdout.buffer.write(msgspec.json.encode(asdict(asyncio.run(_take(of_url, of_tenant, of_step, of_entities)))))
