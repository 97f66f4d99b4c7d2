"""`recollect tenants erase` as an operator types it: it reports, then erases, and touches no other tenant."""

from collections.abc import Sequence
from pathlib import Path

import asyncpg
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.accounts.tenants.model import Tenant
from recollect.graph.entities.model import NewEntity
from recollect.postgres.database import Database
from recollect.retention.erasure.model import WHERE_COPIES_REMAIN
from recollect.settings import Settings
from tests.conftest import NewTenant
from tests.support.commands import Shell
from tests.support.gateway import NewApiKey, RunningGateway
from tests.support.memories import Agent, at_work
from tests.support.workers import environment

pytestmark = pytest.mark.whole_database

SECRET = "qzxsecretqz"
NOT_YET = "not erased yet: "


@pytest.fixture
def operators(settings: Settings, tmp_path: Path) -> Shell:
    """A shell of an operator of the tests' database."""
    return Shell(tmp_path, environment(settings))


def table(lines: Sequence[str]) -> dict[str, int]:
    """The number of rows of each table in the output."""
    told = {name: int(rows) for name, rows in (line.split("\t") for line in lines)}
    return {name: count for name, count in told.items() if name != "usage_hourly"}


async def rows(owner: asyncpg.Connection, tenant: Tenant) -> dict[str, int]:
    """The number of rows of the tenant in each table with any, except usage, which is counted in the background."""
    tables = await owner.fetch(
        """SELECT c.relname AS name FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id'
        WHERE c.relnamespace = 'recollect'::regnamespace AND c.relkind IN ('r', 'p')
            AND NOT c.relispartition"""
    )
    counts = {
        row["name"]: await owner.fetchval(f"SELECT count(*) FROM {row['name']} WHERE tenant_id = $1", tenant.id)
        for row in tables
    }
    counts["tenants"] = await owner.fetchval("SELECT count(*) FROM tenants WHERE id = $1", tenant.id)
    return {name: count for name, count in counts.items() if count and name != "usage_hourly"}


async def filled(db: Database, tenant: Tenant) -> Agent:
    """Fill a tenant with some memories."""
    agent = Agent(db, operator_caller(tenant))
    await agent.create(NewEntity("Ada", "person", (f"likes {SECRET}",)), NewEntity("Grace", "person"))
    await agent.relate(("Ada", "Grace", "knows"))
    await agent.delete("Grace")
    return agent


async def test_the_command_erases_a_tenant(
    operators: Shell,
    db: Database,
    owner: asyncpg.Connection,
    new_tenant: NewTenant,
    gateway: RunningGateway,
    issue: NewApiKey,
) -> None:
    mine, other = await new_tenant(), await new_tenant()
    async with at_work(db, operator_caller(other)):
        for tenant in (mine, other):
            await filled(db, tenant)
        key = (await issue(operator_caller(mine), kind="admin")).secret
        before, others = await rows(owner, mine), await rows(owner, other)

        refused = await operators.run("tenants", "erase", mine.slug)
        assert refused.code != 0
        assert "--yes" in refused.err
        told = await operators.run("tenants", "erase", mine.slug, "--dry-run")
        assert (told.code, told.err) == (0, "")
        assert table(told.text.splitlines()) == before == await rows(owner, mine)
        async with gateway.http(key) as http:
            assert (await http.get("/v1/graphs")).status_code == 200, "a dry run leaves it as it is"

        done = await operators.run("tenants", "erase", mine.slug, "--yes")
        assert done.code == 0, done.err
        # Statistics of tables that something else analyses at that moment come first; mostly there are none.
        told_to_remain = [line for line in done.err.splitlines() if not line.startswith(f"{NOT_YET}statistics: ")]
        assert told_to_remain == [
            f"{NOT_YET}{place.replace('_', ' ')}: {until}" for place, until in WHERE_COPIES_REMAIN.items()
        ]
        assert table(done.text.splitlines()) == before
        assert SECRET not in told.text + done.text + done.err
        assert (await rows(owner, mine), await rows(owner, other)) == ({}, others)
        async with gateway.http(key) as http:
            assert (await http.get("/v1/graphs")).status_code == 401
        again = await operators.run("tenants", "erase", mine.slug, "--yes")
        assert again.code != 0
        assert mine.slug in again.err
        assert "Traceback" not in refused.err + again.err
        listed = (await operators.run("tenants", "list")).text.split()
        assert other.slug in listed
        assert mine.slug not in listed
        assert (await operators.run("tenants", "create", mine.slug)).code == 0, "its slug is free again"


async def test_the_command_says_what_to_run_if_statistics_could_not_be_updated(
    operators: Shell, owner: asyncpg.Connection, new_tenant: NewTenant
) -> None:
    tenant = await new_tenant()
    async with owner.transaction():
        await owner.execute("LOCK TABLE recollect.nodes IN SHARE UPDATE EXCLUSIVE MODE")
        done = await operators.run("tenants", "erase", tenant.slug, "--yes")
    assert done.code == 0, done.err
    told = [line for line in done.err.splitlines() if line.startswith(f"{NOT_YET}statistics: ")]
    assert told == [f"{NOT_YET}statistics: until the owner of the tables has run ANALYZE recollect.nodes"]
