"""A move of a tenant to another cell copies all of its rows, and no others."""

import asyncpg
import pytest

from recollect.settings.cells import HOME
from tests.support.moves import AWAY, TwoCells
from tests.tenancy.conftest import Neighbour, contents

GLOBAL = {
    "people",
    "sessions",
    "passkeys",
    "passkey_challenges",
    "password_resets",
    "oauth_clients",
    "signing_keys",
    "plans",
    "operator_keys",
    "operator_sessions",
    "operator_log",
    "erasure_receipts",
    "tenant_deletions",
    "tenant_cells",
    "tenant_moves",
    "tenants",
    "schema_migrations",
}
"""Tables that are not replicated: a move copies their rows of the tenant otherwise, or leaves them at home."""


async def test_every_table_is_replicated_or_listed_as_global(owner: asyncpg.Connection, tables: list[str]) -> None:
    """Primary keys of replicated tables begin with the tenant: PostgreSQL replicates only the key of a deleted row."""
    assert set(await owner.fetchval("SELECT tables_of_tenants()")) == set(tables)
    keys = await owner.fetch(
        """SELECT c.relname, array_agg(a.attname) AS key, c.relreplident::text AS identity FROM pg_class c
        LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
        LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
        WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        GROUP BY 1, 3"""
    )
    assert {row["relname"] for row in keys} - GLOBAL == set(tables)
    assert [row["relname"] for row in keys if row["identity"] != "d"] == []
    assert [row["relname"] for row in keys if row["relname"] in tables and "tenant_id" not in row["key"]] == []


@pytest.mark.proves("security: moves")
async def test_a_move_copies_all_rows_of_its_tenant_and_no_others(
    two_cells: TwoCells, neighbours: tuple[Neighbour, Neighbour], owner: asyncpg.Connection, tables: list[str]
) -> None:
    mine, other = neighbours
    await add_people_of_its_provider(owner, mine)
    before, theirs = await contents(owner, mine), await contents(owner, other)
    async with two_cells.bare(AWAY) as away:  # Other tests move tenants to it, too.
        known = [row["id"] for row in await away.fetch("SELECT id FROM people")]
    await two_cells.move(mine.caller.tenant, keep_source=True)
    async with two_cells.bare(AWAY) as away:
        assert await contents(away, mine) == before
        assert await contents(away, other) == []
        for table in tables:
            assert (
                await away.fetchval(f"SELECT count(*) FROM {table} WHERE tenant_id = $1", mine.caller.tenant_id) > 0
            ), table
        assert await away.fetchval("SELECT count(*) FROM tenants WHERE id = $1", other.caller.tenant_id) == 0
        people = await away.fetch("SELECT name, password_hash FROM people WHERE NOT id = ANY ($1) ORDER BY name", known)
        assert [tuple(person) for person in people] == [("Ada", None), ("Brought", None)]
        assert await away.fetchval("SELECT count(*) FROM sessions WHERE NOT person_id = ANY ($1)", known) == 1
    await two_cells.go_on(mine.caller.tenant)
    assert await contents(owner, mine) == []
    assert await contents(owner, other) == theirs
    assert await owner.fetchval("SELECT count(*) FROM people WHERE provider_tenant_id = $1", mine.caller.tenant_id) == 0
    await two_cells.move(mine.caller.tenant, to=HOME)
    assert await contents(owner, mine) == before
    assert await contents(owner, other) == theirs
    async with two_cells.bare(AWAY) as away:
        assert await away.fetchval("SELECT count(*) FROM people WHERE NOT id = ANY ($1)", known) == 0
    sessions = "SELECT count(*) FROM sessions WHERE confined_to = $1"
    assert await owner.fetchval(sessions, mine.caller.tenant_id) == 1


@pytest.mark.proves("security: moves")
async def test_the_cleanup_of_a_move_refuses_a_tenant_that_is_served(
    neighbours: tuple[Neighbour, Neighbour], owner: asyncpg.Connection
) -> None:
    mine = neighbours[0]
    before = await contents(owner, mine)
    with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError):
        await owner.fetchval("SELECT erase_moved_step($1, 10)", mine.caller.tenant_id)
    assert await contents(owner, mine) == before


async def add_people_of_its_provider(owner: asyncpg.Connection, neighbour: Neighbour) -> None:
    """Add a signed-in person of the tenant's own provider, and a password of its other member.

    Also add a session of a former member and an ended session, neither of which is copied.
    """
    await owner.execute(
        """WITH person AS (INSERT INTO people (id, email, name, provider_tenant_id)
            VALUES (gen_random_uuid(), 'brought@example.com', 'Brought', $1) RETURNING id)
        INSERT INTO sessions (id, person_id, hash, expires_at, user_agent, address, confined_to, provider_id)
        SELECT gen_random_uuid(), p.id, sha256(p.id::text::bytea), now() + interval '1 hour', '', '', $1, i.id
        FROM person p, identity_providers i WHERE i.tenant_id = $1""",
        neighbour.caller.tenant_id,
    )
    await owner.execute(
        """WITH left_it AS (INSERT INTO people (id, email, name)
            VALUES (gen_random_uuid(), gen_random_uuid() || '@example.com', 'Was a member') RETURNING id)
        INSERT INTO sessions
            (id, person_id, hash, expires_at, revoked_at, user_agent, address, confined_to, provider_id)
        SELECT gen_random_uuid(), w.id, sha256(gen_random_uuid()::text::bytea), now() + interval '1 hour', w.ended,
            '', '', $1, i.id
        FROM (SELECT id, NULL::timestamptz AS ended FROM left_it
            UNION ALL SELECT person_id, now() FROM members WHERE tenant_id = $1) w,
            identity_providers i WHERE i.tenant_id = $1""",
        neighbour.caller.tenant_id,
    )
    await owner.execute(
        "UPDATE people SET password_hash = 'secret' WHERE id IN (SELECT person_id FROM members WHERE tenant_id = $1)",
        neighbour.caller.tenant_id,
    )
