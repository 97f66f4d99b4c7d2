"""Deletion of tenants: suspended at once, erased after the grace period, restorable until then."""

import asyncio
import hashlib
import json
from contextlib import suppress
from datetime import timedelta

import asyncpg
import pytest

from recollect.accounts.deletions import service as deletions
from recollect.accounts.deletions.model import StepOutcome
from recollect.accounts.identity.model import operator_caller
from recollect.accounts.operator_log import service as operator_log
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.errors import Conflict, ErrorCode, NotFound
from recollect.graph.entities.model import NewEntity
from recollect.postgres.connections import OWNER_ROLE, session_settings
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect_workers.context import WorkerContext
from recollect_workers.jobs import tenant_erasure
from tests.conftest import NewTenant
from tests.support.erasures import erase_now, rows_of
from tests.support.memories import Agent

GRACE, NONE = timedelta(days=30), timedelta(0)


async def filled(db: Database, tenant: Tenant) -> Tenant:
    agent = Agent(db, operator_caller(tenant))
    await agent.create(*(NewEntity(f"entity {n}", "thing", ("is one of several",)) for n in range(8)))
    await agent.relate(("entity 1", "entity 2", "precedes"))
    return tenant


class TestGrace:
    @pytest.mark.parametrize("before", ["active", "read_only", "suspended"])
    async def test_a_restored_tenant_has_its_former_status(
        self, operator: Operator, tenant: Tenant, before: str
    ) -> None:
        if before != "active":
            await tenants.suspend_tenant(operator, tenant.slug, read_only=before == "read_only")
        deleted = await deletions.delete_tenant(operator, tenant.slug, grace=GRACE)
        assert deleted.status == "deleted"
        assert deleted.erase_at is not None
        restored = await deletions.restore_tenant(operator, tenant.slug)
        assert (restored.status, restored.erase_at) == (before, None)
        with pytest.raises(Conflict) as error:
            await deletions.restore_tenant(operator, tenant.slug)
        assert error.value.code == ErrorCode.TENANT_NOT_DELETED

    async def test_a_deleted_tenant_is_suspended_and_cannot_be_resumed(
        self, operator: Operator, tenant: Tenant, owner: asyncpg.Connection
    ) -> None:
        await deletions.delete_tenant(operator, tenant.slug, grace=GRACE)
        assert await owner.fetchval("SELECT status FROM tenants WHERE id = $1", tenant.id) == "suspended"
        for act in (tenants.resume_tenant, tenants.suspend_tenant):
            with pytest.raises(Conflict) as error:
                await act(operator, tenant.slug)
            assert error.value.code == ErrorCode.TENANT_DELETED

    async def test_deleting_again_can_only_shorten_the_grace_period(self, operator: Operator, tenant: Tenant) -> None:
        first = await deletions.delete_tenant(operator, tenant.slug, grace=GRACE)
        later = await deletions.delete_tenant(operator, tenant.slug, grace=2 * GRACE)
        sooner = await deletions.delete_tenant(operator, tenant.slug, grace=GRACE / 2)
        assert first.erase_at is not None
        assert sooner.erase_at is not None
        assert later.erase_at == first.erase_at > sooner.erase_at
        assert (await deletions.restore_tenant(operator, tenant.slug)).status == "active"

    async def test_concurrent_deletion_and_restoration_leave_a_consistent_state(
        self, settings: Settings, tenant: Tenant, owner: asyncpg.Connection
    ) -> None:
        async def act(number: int) -> None:
            async with Operator.connect(settings.migration_url, settings) as operator:
                with suppress(Conflict):  # The tenant was not deleted, or no longer is.
                    if number % 2:
                        await deletions.restore_tenant(operator, tenant.slug)
                    else:
                        await deletions.delete_tenant(operator, tenant.slug, grace=GRACE)

        await asyncio.gather(*(act(number) for number in range(8)))
        row = await owner.fetchrow(
            """SELECT t.status, t.erase_at IS NOT NULL AS deleted, EXISTS (
                SELECT 1 FROM tenant_deletions d WHERE d.id = t.id AND d.status_before = 'active') AS noted
            FROM tenants t WHERE id = $1""",
            tenant.id,
        )
        assert row is not None
        assert tuple(row) in (("active", False, False), ("suspended", True, True))


class TestErasure:
    async def test_the_worker_erases_only_tenants_that_are_due(
        self, operator: Operator, db: Database, new_tenant: NewTenant, context: WorkerContext
    ) -> None:
        due, waits = await filled(db, await new_tenant()), await filled(db, await new_tenant())
        counts = await deletions.count_rows(operator, due.slug)
        await deletions.delete_tenant(operator, waits.slug, grace=GRACE)
        await deletions.delete_tenant(operator, due.slug, grace=NONE)
        await tenant_erasure.erase(context)
        receipt = await deletions.finish_erasure(operator, due.id)
        assert rows_of(receipt) == counts
        with pytest.raises(NotFound):
            await tenants.find_tenant(operator, due.slug)
        assert (await deletions.restore_tenant(operator, waits.slug)).status == "active"
        assert (await deletions.count_rows(operator, waits.slug))["nodes"] == 8

    async def test_a_step_that_dies_is_rolled_back_and_another_worker_continues(
        self, operator: Operator, db: Database, new_tenant: NewTenant, settings: Settings, context: WorkerContext
    ) -> None:
        tenant = await filled(db, await new_tenant())
        counts = await deletions.count_rows(operator, tenant.slug)
        await deletions.delete_tenant(operator, tenant.slug, grace=NONE)
        assert await deletions.erase_step(operator, tenant.id, rows=3) in (StepOutcome.MORE, StepOutcome.BUSY)
        dying = await asyncpg.connect(settings.migration_url, server_settings=session_settings(OWNER_ROLE, settings))
        await dying.execute("BEGIN")
        assert await deletions.erase_step(Operator(dying), tenant.id, rows=5) is StepOutcome.MORE
        assert await deletions.erase_step(operator, tenant.id) is StepOutcome.BUSY
        dying.terminate()
        with pytest.raises(Conflict) as error:
            await deletions.restore_tenant(operator, tenant.slug)
        assert error.value.code == ErrorCode.ERASURE_BEGUN
        await tenant_erasure.erase(context)
        receipt = await deletions.finish_erasure(operator, tenant.id)
        assert rows_of(receipt) == counts

    @pytest.mark.proves("security: erasure-grace-period")
    async def test_a_receipt_can_be_verified_and_not_be_changed(
        self, operator: Operator, new_tenant: NewTenant, owner: asyncpg.Connection
    ) -> None:
        tenant = await new_tenant()
        await erase_now(operator, tenant.slug)
        [receipt] = await deletions.list_receipts(operator, slug=tenant.slug)
        assert hashlib.sha256(receipt.content.encode()).hexdigest() == receipt.sha256
        content = json.loads(receipt.content)
        assert content["tenant"] == {"id": str(tenant.id), "slug": tenant.slug}
        assert content["deleted_by"] == "operator"
        assert content["rows"]["tenants"] == 1
        assert await deletions.get_receipt(operator, receipt.id) == receipt
        for statement in ("UPDATE erasure_receipts SET slug = 'x'", "DELETE FROM operator_log"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="append-only"):
                await owner.execute(statement)


async def test_each_act_is_in_the_operators_log(operator: Operator, new_tenant: NewTenant) -> None:
    tenant = await new_tenant()
    await tenants.suspend_tenant(operator, tenant.slug, read_only=True)
    await tenants.resume_tenant(operator, tenant.slug)
    await tenants.set_plan(operator, tenant.slug, "free")
    await deletions.delete_tenant(operator, tenant.slug, grace=GRACE)
    await deletions.restore_tenant(operator, tenant.slug)
    await erase_now(operator, tenant.slug)
    told = await operator_log.list_entries(operator, subject=f"tenant:{tenant.slug}")
    assert [entry.action for entry in reversed(told)] == [
        "tenant.created",
        "tenant.suspended",
        "tenant.resumed",
        "tenant.plan_changed",
        "tenant.deleted",
        "tenant.restored",
        "tenant.deleted",
        "tenant.erased",
    ]
    assert {entry.actor for entry in told} == {"operator", "service"}
    assert told[-2].details == {"kind": "read_only"}
