"""Very many tenants in one database, each with a copy of a small graph: created by SQL in seconds instead of hours."""

from uuid import UUID

import asyncpg

TABLES = ("graphs", "graph_heads", "graph_indexes", "nodes", "node_versions", "observations", "relations", "passages")
"""The tables of a tenant's memory, with referenced tables first."""

COPIED_AT_ONCE = 500


async def make_crowd(superuser: asyncpg.Connection, tenant_id: UUID, count: int) -> list[UUID]:
    """Create so many tenants with copies of a tenant's rows; returns their ids. `superuser` must have no triggers.

    Each id in a copy is a hash of the original id and the tenant, so that references stay intact.
    """
    made = list[UUID]()
    await superuser.execute(_COPIED_ID)
    for start in range(0, count, COPIED_AT_ONCE):
        rows = await superuser.fetch(
            "INSERT INTO tenants (id, slug, name) SELECT gen_random_uuid(), 'crowd-' || g, 'Crowd' "
            "FROM generate_series($1::int, $2::int) g RETURNING id",
            start,
            min(start + COPIED_AT_ONCE, count) - 1,
        )
        tenants = [row["id"] for row in rows]
        for table in TABLES:
            await _copy(superuser, table, tenant_id, tenants)
        made += tenants
    await superuser.execute("VACUUM ANALYZE", timeout=600)
    await superuser.execute("CHECKPOINT", timeout=600)
    return made


_COPIED_ID = """
CREATE OR REPLACE FUNCTION pg_temp.copied(id uuid, tenant uuid) RETURNS uuid LANGUAGE sql IMMUTABLE
AS $$ SELECT md5(id::text || tenant::text)::uuid $$
"""


async def _copy(superuser: asyncpg.Connection, table: str, tenant_id: UUID, tenants: list[UUID]) -> None:
    columns = await superuser.fetch(
        "SELECT attname AS name, atttypid = 'uuid'::regtype AS is_id FROM pg_attribute "
        "WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
        table,
    )
    names = [row["name"] for row in columns]
    values = [
        "t.id"
        if row["name"] == "tenant_id"
        else f"pg_temp.copied(o.{row['name']}, t.id)"
        if row["is_id"]
        else f"o.{row['name']}"
        for row in columns
    ]
    await superuser.execute(
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "
        f"FROM {table} o CROSS JOIN unnest($2::uuid[]) AS t (id) WHERE o.tenant_id = $1",
        tenant_id,
        tenants,
        timeout=600,
    )
