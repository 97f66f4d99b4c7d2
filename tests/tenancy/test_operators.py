"""The role of the operator API reaches tenants and plans, and nothing that a tenant stored."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from recollect.accounts.deletions import service as deletions
from recollect.accounts.operator_keys import service as operator_keys
from recollect.postgres.connections import APP_ROLE, OPERATOR_ROLE, session_settings
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_local.postgres import LocalPostgres
from tests.tenancy.conftest import PEPPER, Neighbour
from tests.tenancy.test_row_level_security import TABLES_OF_OPERATORS

Neighbours = tuple[Neighbour, Neighbour]

RIGHTS = {
    "tenants": {"SELECT", "INSERT", "UPDATE"},
    "plans": {"SELECT", "INSERT", "UPDATE"},
    "tenant_deletions": {"SELECT", "INSERT", "DELETE"},
    "erasure_receipts": {"SELECT"},
    "operator_log": {"SELECT", "INSERT"},
    "tenant_cells": {"SELECT", "INSERT", "UPDATE", "DELETE"},
    "tenant_moves": {"SELECT"},
    "deletion_requests": {"SELECT"},
    "graphs": {"INSERT"},
    "graph_heads": {"INSERT"},
    "graph_indexes": {"INSERT"},
    "audit_log": {"INSERT"},
    "api_keys": {"SELECT", "INSERT"},
    "invitations": {"SELECT", "INSERT", "UPDATE"},
}
"""All of its rights, by table, even if only on some columns."""

SECRETS = {
    ("api_keys", "hash"),
    ("invitations", "hash"),
    ("operator_keys", "hash"),
    ("deletion_requests", "requested_by"),
}


@pytest.fixture
async def operating(postgres: LocalPostgres, settings: Settings) -> AsyncIterator[asyncpg.Connection]:
    """A connection for arbitrary SQL as the operator API."""
    connection = await asyncpg.connect(
        postgres.url(OPERATOR_ROLE), server_settings=session_settings(OPERATOR_ROLE, settings)
    )
    yield connection
    await connection.close()


@pytest.mark.proves("security: operator-role")
async def test_the_operator_role_has_exactly_these_rights(owner: asyncpg.Connection) -> None:
    found = await owner.fetch(
        """SELECT c.relname AS name, array_agg(privilege) AS rights
        FROM pg_class c, unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS privilege
        WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
            AND CASE WHEN privilege IN ('DELETE', 'TRUNCATE', 'TRIGGER') THEN has_table_privilege($1, c.oid, privilege)
                ELSE has_any_column_privilege($1, c.oid, privilege) END
        GROUP BY c.relname""",
        OPERATOR_ROLE,
    )
    assert {row["name"]: set(row["rights"]) for row in found} == RIGHTS
    for table, column in SECRETS:
        assert not await owner.fetchval(
            "SELECT has_column_privilege($1, $2, $3, 'SELECT')", OPERATOR_ROLE, table, column
        )
    member = "SELECT count(*) FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = $1"
    assert await owner.fetchval(member, OPERATOR_ROLE) == 0


@pytest.mark.proves("security: operator-role")
async def test_the_operator_role_reads_nothing_that_a_tenant_stored(
    operating: asyncpg.Connection, neighbours: Neighbours, tables: list[str]
) -> None:
    """Also with the tenant set, which the operator API needs to create rows there."""
    for neighbour in neighbours:
        async with operating.transaction():
            await operating.execute(
                "SELECT set_config('recollect.tenant_id', $1, true)", str(neighbour.caller.tenant_id)
            )
            for table in [*tables, "search_nodes", "search_passages", "search_observations"]:
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    async with operating.transaction():
                        await operating.fetch(f"SELECT * FROM {table}")
        assert await operating.fetch("SELECT id FROM api_keys") == []
        assert await operating.fetchval("SELECT count(*) FROM tenants WHERE id = $1", neighbour.caller.tenant_id) == 1


async def test_the_application_has_no_rights_on_operator_tables(owner: asyncpg.Connection) -> None:
    for table in TABLES_OF_OPERATORS:
        for right in ("SELECT", "INSERT", "UPDATE"):
            assert not await owner.fetchval("SELECT has_any_column_privilege($1, $2, $3)", APP_ROLE, table, right)


@pytest.mark.proves("security: erasure-grace-period")
async def test_no_role_can_erase_a_tenant_before_its_grace_period_is_over(
    neighbours: Neighbours,
    attacker: asyncpg.Connection,
    operating: asyncpg.Connection,
    operator: Operator,
    owner: asyncpg.Connection,
) -> None:
    kept, deleted = (neighbour.caller for neighbour in neighbours)
    await deletions.delete_tenant(operator, deleted.tenant, grace=deletions.BUSY_WAIT)
    for connection in (attacker, operating):
        for tenant_id in (kept.tenant_id, deleted.tenant_id, None):
            assert await connection.fetchval("SELECT erase_tenant_step($1, 100)", tenant_id) is None
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await attacker.execute("UPDATE tenants SET erase_at = now()")
    assert await owner.fetchval("SELECT count(*) FROM nodes WHERE tenant_id = $1", deleted.tenant_id) > 0
    await deletions.restore_tenant(operator, deleted.tenant)


async def test_only_the_operator_api_finds_operator_keys(
    operating: asyncpg.Connection, operator: Operator, attacker: asyncpg.Connection
) -> None:
    key, secret = await operator_keys.create_key(operator, "test", lifetime=deletions.BUSY_WAIT, pepper=PEPPER)
    presented = Operator(operating)
    assert await operator_keys.authenticate(presented, secret, pepper=PEPPER) == f"operator_key:{key.id}"
    assert await operating.fetch("SELECT * FROM find_operator_key(NULL)") == []
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await attacker.fetch("SELECT * FROM find_operator_key(NULL)")


@pytest.mark.proves("security: operator-pages")
async def test_the_application_neither_makes_nor_finds_a_session_of_an_operator(
    operating: asyncpg.Connection, operator: Operator, attacker: asyncpg.Connection
) -> None:
    """Otherwise a gateway in wrong hands could act as an operator, whose secret it has, too (ADR 3)."""
    key, _ = await operator_keys.create_key(operator, "test", lifetime=deletions.BUSY_WAIT, pepper=PEPPER)
    issued = await operator_keys.begin_session(Operator(operating), key.id, pepper=PEPPER)
    found = await operator_keys.find_session(Operator(operating), issued.secret, pepper=PEPPER)
    assert found is not None
    assert await operating.fetch("SELECT * FROM find_operator_session(NULL)") == []
    for function in (
        "begin_operator_session(NULL, NULL)",
        "find_operator_session(NULL)",
        "end_operator_session(NULL)",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await attacker.fetch(f"SELECT * FROM {function}")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await attacker.execute("INSERT INTO operator_sessions (hash, key_id) VALUES ('', $1)", key.id)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await operating.fetch("SELECT hash FROM operator_sessions")


async def test_use_is_told_to_operators_alone_and_of_the_asked_tenants(
    operating: asyncpg.Connection, neighbours: Neighbours, attacker: asyncpg.Connection
) -> None:
    mine, other = (neighbour.caller.tenant_id for neighbour in neighbours)
    function = "SELECT * FROM use_of_tenants($1, now())"
    [row] = await operating.fetch(function, [mine])
    assert row["tenant_id"] == mine
    assert (row["graphs"] > 0, row["stored_bytes"] > 0) == (True, True)
    assert {row["tenant_id"] for row in await operating.fetch(function, [mine, other])} == {mine, other}
    assert await operating.fetch(function, None) == []
    for call, values in ((function, [[mine]]), ("SELECT * FROM failed_work(now())", [])):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await attacker.fetch(call, *values)
