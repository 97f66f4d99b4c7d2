"""Group `partitions`: what vector indexes of other graphs cost a statement, in one table and in a partitioned one.

Equally many partial indexes, each for a graph of a different tenant, are created on an unpartitioned table of vectors,
and on the partitioned table of the schema. Then the search by meaning in one graph is planned on both in turns, as the
role of the application, and vectors of a graph without an index are written to both. The tables are empty, because only
the number of indexes matters to PostgreSQL.
"""

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import msgspec
from rich import box
from rich.table import Table

from recollect.postgres.connections import APP_ROLE, session_settings
from recollect.postgres.migrate import migrate
from recollect.retrieval.vector_indexes.model import PARTITIONS, VectorIndex, create_statement, partition_name
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres

ONE_TABLE = "vectors_in_one"
PARTED = "searched_vectors"
DIMENSIONS = 256
TURNS = 50
WRITTEN = 200
"""The number of vectors per turn of writing."""

SEARCH = f"""
    EXPLAIN (SUMMARY, FORMAT JSON) SELECT passage_id FROM {{table}}
    WHERE tenant_id = '{{tenant}}' AND graph_id = '{{graph}}' AND live AND model = 'm'
    ORDER BY embedding::halfvec({DIMENSIONS}) <=> array_fill(0.1::real, ARRAY[{DIMENSIONS}])::halfvec({DIMENSIONS})
    LIMIT 50"""

WRITE = f"""
    INSERT INTO {{table}} (tenant_id, graph_id, passage_id, model, embedding)
    SELECT '{{tenant}}', '{{graph}}', gen_random_uuid(), 'm', array_fill(0.1::real, ARRAY[{DIMENSIONS}])::halfvec
    FROM generate_series(1, {WRITTEN})"""


@dataclass(frozen=True, slots=True)
class MeasuredPartitions:
    """So many indexes, in one table or in partitions: median ms of planning a search and of writing a vector."""

    indexes: int
    table: str
    planning_ms: float
    writing_ms: float


async def measure_partitions(numbers: Sequence[int], rows: list[MeasuredPartitions]) -> None:
    """Measure with growing numbers of indexes, into `rows`, which are valid even if this ends early."""
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as folder:
        postgres = LocalPostgres(Path(folder), settings={"fsync": "off", "synchronous_commit": "off"})
        postgres.start()
        try:
            await migrate(postgres.url())
            settings = Settings(database_url=postgres.url("recollect_app"))
            owner = await asyncpg.connect(
                postgres.url("recollect_owner"), server_settings={"search_path": "recollect, public"}
            )
            await _prepare(owner)
            tenants: list[UUID] = []
            for number in sorted(numbers):
                while len(tenants) < number:
                    tenants.append(await _add_indexes(owner))
                rows += await _measured(settings, owner, tenants)
            await owner.close()
        finally:
            postgres.stop()


def partitions_table(rows: Sequence[MeasuredPartitions]) -> Table:
    """The table of the measurements."""
    table = Table(
        box=box.SIMPLE,
        title=f"Vector indexes of other graphs, in one table and in {PARTITIONS} parts",
        caption="medians in ms, in turns in one run: to plan the search of one graph, and to write one vector",
    )
    for column in ("indexes", "table", "planning", "writing"):
        table.add_column(column, justify="left" if column == "table" else "right", no_wrap=True)
    for row in rows:
        table.add_row(f"{row.indexes:,}", row.table, f"{row.planning_ms:.2f}", f"{row.writing_ms:.3f}")
    return table


async def _prepare(owner: asyncpg.Connection) -> None:
    """Create the unpartitioned table, without foreign keys to passages."""
    await owner.execute(f"ALTER TABLE {PARTED} DROP CONSTRAINT searched_vectors_passage")
    await owner.execute(
        f"CREATE TABLE {ONE_TABLE} (LIKE {PARTED} INCLUDING ALL); ALTER TABLE {ONE_TABLE} ENABLE ROW LEVEL SECURITY; "
        f"GRANT SELECT, INSERT, DELETE ON {ONE_TABLE} TO {APP_ROLE}; CREATE POLICY tenant_isolation ON {ONE_TABLE} "
        "USING (tenant_id = (SELECT nullif(current_setting('recollect.tenant_id', true), '')::uuid))"
    )


async def _add_indexes(owner: asyncpg.Connection) -> UUID:
    """Add the index of a graph of a new tenant to the unpartitioned table and to the tenant's partition."""
    index = VectorIndex(uuid4(), uuid4(), "m", DIMENSIONS)
    part: int = await owner.fetchval(
        "SELECT n FROM generate_series(0, $1 - 1) AS n "
        "WHERE satisfies_hash_partition('searched_vectors'::regclass, $1, n, $2::uuid)",
        PARTITIONS,
        index.tenant_id,
    )
    statement = create_statement(index, part).text
    await owner.execute(statement)
    await owner.execute(
        statement.replace(index.name, f"one_{index.graph_id.hex}").replace(
            f"ON {partition_name(part)}", f"ON {ONE_TABLE}"
        )
    )
    return index.tenant_id


async def _measured(settings: Settings, owner: asyncpg.Connection, tenants: Sequence[UUID]) -> list[MeasuredPartitions]:
    """Measure both tables in turns, with sessions of the application for tenants that have an index."""
    app = await asyncpg.connect(settings.database_url, server_settings=session_settings(APP_ROLE, settings))
    planning: dict[str, list[float]] = {ONE_TABLE: [], PARTED: []}
    writing: dict[str, list[float]] = {ONE_TABLE: [], PARTED: []}
    try:
        for turn in range(TURNS):
            tenant, graph = tenants[turn % len(tenants)], uuid4()
            await app.execute("SELECT set_config('recollect.tenant_id', $1, false)", str(tenant))
            for table in planning:
                asked = {"table": table, "tenant": tenant, "graph": graph}
                told = await app.fetchval(SEARCH.format(**asked))
                planning[table].append(msgspec.json.decode(told)[0]["Planning Time"])
                begun = time.perf_counter()
                await app.execute(WRITE.format(**asked))
                writing[table].append((time.perf_counter() - begun) * 1_000 / WRITTEN)
        await owner.execute(f"TRUNCATE {ONE_TABLE}, {PARTED}")
    finally:
        await app.close()
    return [
        MeasuredPartitions(len(tenants), name, statistics.median(planning[table]), statistics.median(writing[table]))
        for table, name in ((ONE_TABLE, "one"), (PARTED, f"{PARTITIONS} parts"))
    ]
