"""What the gateway's role may do about the deletion of a tenant: store that somebody asked, for one, and wait."""

from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from recollect.accounts.deletion_requests.model import WEEK
from recollect.errors import TooLarge
from tests.support.deletion_requests import advance_request
from tests.tenancy.conftest import Neighbour

Neighbours = tuple[Neighbour, Neighbour]
pytestmark = pytest.mark.whole_database

ASKED = "INSERT INTO deletion_requests (tenant_id, requested_by{more}) VALUES ($1, gen_random_uuid(){values})"


@pytest.fixture
async def nothing_asked(owner: asyncpg.Connection, neighbours: Neighbours) -> None:
    await owner.execute(
        "DELETE FROM deletion_requests WHERE tenant_id = ANY ($1)", [each.caller.tenant_id for each in neighbours]
    )


async def acting(neighbour: Neighbour, statement: str, *arguments: object) -> str:
    async with neighbour.db.transaction(neighbour.caller) as tx:
        return str(await tx._connection.execute(statement, *arguments))


async def rows(owner: asyncpg.Connection, tenant_id: UUID) -> list[asyncpg.Record]:
    found: list[asyncpg.Record] = await owner.fetch("SELECT * FROM deletion_requests WHERE tenant_id = $1", tenant_id)
    return found


@pytest.mark.proves("security: deletion-requests")
async def test_a_request_is_for_the_own_tenant_and_its_time_is_the_databases(
    neighbours: Neighbours, owner: asyncpg.Connection, nothing_asked: None
) -> None:
    mine, other = neighbours
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await acting(mine, ASKED.format(more="", values=""), other.caller.tenant_id)
    for column, value in (("due_at", "now()"), ("requested_at", "now() - interval '9 days'")):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await acting(mine, ASKED.format(more=f", {column}", values=f", {value}"), mine.caller.tenant_id)
    await acting(mine, ASKED.format(more="", values=""), mine.caller.tenant_id)
    [row] = await rows(owner, mine.caller.tenant_id)
    assert row["due_at"] - row["requested_at"] == timedelta(days=7)
    for change in ("due_at = now()", "requested_at = now()", "requested_by = gen_random_uuid()"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await acting(mine, f"UPDATE deletion_requests SET {change}")
    assert await acting(other, "DELETE FROM deletion_requests") == "DELETE 0"
    assert await rows(owner, mine.caller.tenant_id) == [row]
    with pytest.raises(asyncpg.CheckViolationError):
        await owner.execute("UPDATE deletion_requests SET due_at = now() WHERE tenant_id = $1", mine.caller.tenant_id)


@pytest.mark.proves("security: deletion-requests")
async def test_no_tenant_is_deleted_before_its_week_is_over(
    neighbours: Neighbours, attacker: asyncpg.Connection, owner: asyncpg.Connection, nothing_asked: None
) -> None:
    mine, other = neighbours
    await acting(mine, ASKED.format(more="", values=""), mine.caller.tenant_id)
    function = "SELECT delete_requested_tenant($1, $2)"
    for tenant_id in (mine.caller.tenant_id, other.caller.tenant_id, uuid4()):
        assert await attacker.fetchval(function, tenant_id, uuid4()) is None
    ids = [neighbour.caller.tenant_id for neighbour in neighbours]
    found = await owner.fetch("SELECT status, erase_at FROM tenants WHERE id = ANY ($1)", ids)
    assert [tuple(row) for row in found] == [("active", None)] * 2
    due = {row["tenant_id"] for row in await attacker.fetch("SELECT * FROM tenants_with_due_deletion()")}
    assert due.isdisjoint(ids)
    await advance_request(owner, mine.caller.tenant_id, WEEK)
    due = {row["tenant_id"] for row in await attacker.fetch("SELECT * FROM tenants_with_due_deletion()")}
    assert due & set(ids) == {mine.caller.tenant_id}
    erase_at = await attacker.fetchval(function, mine.caller.tenant_id, uuid4())
    assert await owner.fetchval("SELECT $1 > now() + interval '29 days'", erase_at), "an operator can restore it"
    assert await attacker.fetchval("SELECT erase_tenant_step($1, 10)", mine.caller.tenant_id) is None
    assert await owner.fetchval("SELECT status FROM tenants WHERE id = $1", other.caller.tenant_id) == "active"


@pytest.mark.proves("security: deletion-requests")
async def test_operators_are_told_whatever_the_gateway_runs(
    neighbours: Neighbours, owner: asyncpg.Connection, nothing_asked: None
) -> None:
    mine = neighbours[0]
    said = "SELECT count(*) FROM operator_log WHERE action LIKE 'tenant.deletion_%' AND subject = $1"
    subject = f"tenant:{mine.caller.tenant}"
    before = await owner.fetchval(said, subject)
    await acting(mine, ASKED.format(more="", values=""), mine.caller.tenant_id)
    await acting(mine, "DELETE FROM deletion_requests")
    assert await owner.fetchval(said, subject) == before + 2
    for _ in range(4):
        await acting(mine, ASKED.format(more="", values=""), mine.caller.tenant_id)
        await acting(mine, "DELETE FROM deletion_requests")
    with pytest.raises(TooLarge):  # A gateway in wrong hands cannot fill the log.
        await acting(mine, ASKED.format(more="", values=""), mine.caller.tenant_id)
    assert await owner.fetchval(said, subject) == before + 10
    for statement in (
        "SELECT * FROM operator_log",
        "DELETE FROM operator_log",
        "ALTER TABLE deletion_requests DISABLE TRIGGER write_operator_log",
        "SET session_replication_role = replica",
        "TRUNCATE deletion_requests",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await acting(mine, statement)
