"""Group `transfer`: how many entities and relations a second an import writes and an export gives, and in what memory.

Each is measured in a process of its own, so that its greatest memory is its own: resident before and at most. An import
reads a JSON file of the corpus (see `corpus.py`) in batches, each a revision, without the embedding of its passages.
"""

import asyncio
import resource
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from uuid import UUID

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from recollect.caller import Caller, Scope
from recollect.identity.model import operator_caller
from recollect.platform.db import Database, Operator
from recollect.platform.migrate import migrate
from recollect.settings import Settings
from recollect.tenants.service import create_tenant
from recollect.transfer import exports
from recollect.transfer import service as transfer
from recollect.transfer.batches import read_batches
from recollect.transfer.formats import FORMATS
from recollect.transfer.model import Strategy
from recollect.transfer.records import EntityRecord, RelationRecord
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.stack import Stack

GRAPH = "transfer"
READ = ("csv", "graphml")
"""Formats of which a file is read too; JSON is what the first import reads."""
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Measured:
    """One import or export: rows are entities and relations; memory in MiB, before it and at most."""

    doing: str
    entities: int
    rows: int
    megabytes: float
    seconds: float
    resident: float
    peak: float


async def measured(stack: Stack, caller: Caller, folder: Path, doing: str, format_name: str, entities: int) -> Measured:
    """Import or export in a process of its own; exported files are kept in the folder."""
    url, file = stack.settings.database_url, folder / f"export.{format_name}"
    given = msgspec.json.encode([url, str(caller.tenant_id), str(file), doing, format_name, entities]).decode()
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
        raise RuntimeError(f"{doing} {format_name} failed")
    return msgspec.json.decode(out, type=Measured)


async def measure_transfer(stack: Stack, folder: Path, sizes: Sequence[int], console: Console) -> list[Measured]:
    """Import a graph of each size from JSON, export it in every format, and import it again from CSV and GraphML."""
    rows: list[Measured] = []
    await migrate(stack.settings.migration_url)
    for entities in sizes:
        async with Operator.connect(stack.settings.migration_url, stack.settings) as operator:
            caller = operator_caller(await create_tenant(operator, f"transfer-{entities}", "Transfer"))
        steps = [("import", "made"), *(("export", name) for name in FORMATS), *(("import", name) for name in READ)]
        for doing, name in steps:
            rows.append(await measured(stack, caller, folder, doing, name, entities))
            console.print(f"{entities:,} entities: {rows[-1].doing}")
    return rows


def transfer_table(rows: Sequence[Measured]) -> Table:
    """What was measured, for people."""
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


def made_file(entities: int) -> Iterator[bytes]:
    """The corpus as a JSON file, made while it is read."""
    corpus = Corpus()
    for part, first in (("entities", 0), ("relations", 1)):
        yield f'{"{" if part == "entities" else "],"}"{part}":['.encode()
        for number in range(first, entities):
            record = _entity(corpus, number) if part == "entities" else _relation(corpus, number)
            yield (b"" if number == first else b",\n") + msgspec.json.encode(record)
    yield b"]}"


def _entity(corpus: Corpus, number: int) -> EntityRecord:
    entity = corpus.entity(number)
    return EntityRecord(name=entity.name, entity_type=entity.kind or "", observations=list(entity.observations))


def _relation(corpus: Corpus, number: int) -> RelationRecord:
    edge = corpus.relation(number)
    return RelationRecord(from_=edge.source, to=edge.target, relation_type=edge.type)


async def _import(db: Database, caller: Caller, graph: str, format_name: str, chunks: Iterator[bytes]) -> int:
    rows = 0
    for batch in read_batches(format_name, chunks):
        async with db.transaction(caller) as tx:
            await transfer.import_batch(tx, graph, batch.items, Strategy.SKIP)
        rows += len(batch.items)
    return rows


async def _export(db: Database, caller: Caller, format_name: str) -> AsyncIterator[bytes]:
    async with db.transaction(caller, read_only=True) as tx:
        export = await exports.open_export(tx, GRAPH, format_name)
    async for chunk in exports.export_chunks(db, caller, export):
        yield chunk


async def _run(url: str, tenant: str, path: str, doing: str, format_name: str, entities: int) -> Measured:
    caller = Caller(UUID(tenant), "benchmark", "benchmark", frozenset(Scope))
    async with _database(url) as db:
        resident, size = _resident(), 0
        start = time.perf_counter()
        if doing == "export":
            rows = 2 * entities - 1
            with open(path, "wb") as file:  # noqa: ASYNC230 - nothing else runs in this process
                async for chunk in _export(db, caller, format_name):
                    size += file.write(chunk)
        elif format_name == "made":
            rows = await _import(db, caller, GRAPH, "json", made_file(entities))
        else:
            with open(path, "rb") as file:  # noqa: ASYNC230 - likewise
                rows = await _import(
                    db, caller, f"from-{format_name}", format_name, iter(lambda: file.read(_CHUNK), b"")
                )
                size = file.tell()
        seconds = time.perf_counter() - start
    name = f"{doing} {'JSON' if format_name == 'made' else format_name}"
    return Measured(name, entities, rows, size / 1e6, seconds, resident, _peak())


@asynccontextmanager
async def _database(url: str) -> AsyncIterator[Database]:
    async with Database.connect(url, settings=Settings(database_url=url)) as db:
        await db.ping()
        yield db


def _resident() -> float:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 2**20


def _peak() -> float:
    # Not ru_maxrss, which begins with what the process was before exec: the one that started it.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(asdict(asyncio.run(_run(*msgspec.json.decode(sys.argv[1]))))))
