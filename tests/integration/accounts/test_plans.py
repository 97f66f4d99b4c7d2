"""Plans on a real database: created, changed, assigned to tenants, and applied to keys at once."""

import itertools

import asyncpg
import pytest

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import NewKey, operator_caller
from recollect.accounts.plans import service as plans
from recollect.accounts.plans.model import LIMITS, MAX_LIMIT, Plan
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller, Rates
from recollect.cells.databases import Databases
from recollect.errors import InvalidInput, NotFound
from recollect.postgres.database import Database
from recollect.postgres.operator_sessions import Operator

PEPPER = b"a pepper of the tests"

_serial = itertools.count(1)


@pytest.fixture
def name() -> str:
    """The name of a plan for the test alone."""
    return f"plan-{next(_serial)}"


async def rates_of(databases: Databases, secret: str) -> tuple[str, Rates]:
    caller = await identity.authenticate(databases, secret, pepper=PEPPER)
    return caller.plan, caller.rates


async def test_plans_exist_from_the_start(operator: Operator) -> None:
    there = {plan.name: plan for plan in await plans.list_plans(operator)}
    assert there["unlimited"] == Plan("unlimited")
    assert there["free"].nodes_per_graph == 10_000
    for limit in LIMITS:
        grown = [getattr(there[name], limit) for name in ("free", "team", "business")]
        assert grown == sorted(set(grown)), limit


async def test_unnamed_limits_are_kept(operator: Operator, name: str) -> None:
    assert await plans.set_plan(operator, name, {}) == Plan(name)
    await plans.set_plan(operator, name, {"graphs": 3, "stored_bytes": 5_000_000_000})
    assert await plans.set_plan(operator, name, {"concurrent_calls": 1}) == Plan(
        name, graphs=3, stored_bytes=5_000_000_000, concurrent_calls=1
    )
    changed = await plans.set_plan(operator, name, {"graphs": None, "observations": 1})
    assert changed == Plan(name, observations=1, stored_bytes=5_000_000_000, concurrent_calls=1)
    assert changed in await plans.list_plans(operator)


@pytest.mark.parametrize(
    ("named", "limits", "path"),
    [
        ("Free", {}, "name"),
        ("", {}, "name"),
        ("-a", {}, "name"),
        ("a" * 64, {}, "name"),
        ("a", {"graphs": 0}, "graphs"),
        ("a", {"stored_bytes": -1}, "stored_bytes"),
        ("a", {"stored_bytes": MAX_LIMIT + 1}, "stored_bytes"),
        ("unlimited", {"graphs": 1}, "name"),
    ],
)
async def test_an_invalid_plan_is_refused(operator: Operator, named: str, limits: dict[str, int], path: str) -> None:
    before = await plans.list_plans(operator)
    with pytest.raises(InvalidInput) as refused:
        await plans.set_plan(operator, named, limits)
    assert refused.value.path == path
    assert await plans.list_plans(operator) == before


@pytest.mark.parametrize("limit", LIMITS)
async def test_no_limit_can_be_below_one(owner: asyncpg.Connection, limit: str) -> None:
    """Not even by a direct write to the table."""
    with pytest.raises(asyncpg.CheckViolationError):
        await owner.execute(f"UPDATE plans SET {limit} = 0 WHERE name = 'free'")


async def test_a_tenant_has_a_plan_from_the_start(operator: Operator, tenant: Tenant, name: str) -> None:
    assert tenant.plan == "unlimited"
    made = await tenants.create_tenant(operator, f"of-{name}", "Of a plan", plan="free")
    assert made.plan == "free"
    assert made in await tenants.list_tenants(operator, after=f"of-{name[:-1]}")


async def test_an_unknown_plan_cannot_be_assigned(operator: Operator, tenant: Tenant) -> None:
    with pytest.raises(NotFound, match="no plan 'none-such'"):
        await tenants.set_plan(operator, tenant.slug, "none-such")
    with pytest.raises(NotFound, match="no plan 'none-such'"):
        await tenants.create_tenant(operator, "of-none-such", "x", plan="none-such")
    with pytest.raises(NotFound):
        await tenants.set_plan(operator, "no-such-tenant", "free")
    with pytest.raises(NotFound):
        await tenants.find_tenant(operator, "of-none-such")
    assert (await tenants.find_tenant(operator, tenant.slug)).plan == "unlimited"


async def test_a_change_of_plan_applies_to_the_next_call(
    db: Database, databases: Databases, operator: Operator, tenant: Tenant, caller: Caller, name: str
) -> None:
    async with db.transaction(caller) as tx:
        secret = (await identity.create_key(tx, NewKey("k"), pepper=PEPPER)).secret
    assert await rates_of(databases, secret) == ("unlimited", Rates())
    limits = {"requests_per_minute": 9, "key_requests_per_minute": 6, "concurrent_calls": 3}
    await plans.set_plan(operator, name, limits)
    await tenants.set_plan(operator, tenant.slug, name)
    assert await rates_of(databases, secret) == (name, Rates(9, 6, 3))
    await plans.set_plan(operator, name, {"requests_per_minute": None, "concurrent_calls": 2})
    assert await rates_of(databases, secret) == (name, Rates(None, 6, 2))


@pytest.mark.parametrize(
    ("of_key", "of_plan", "told"), [(None, None, None), (4, None, 4), (None, 6, 6), (4, 6, 4), (9, 6, 6)]
)
async def test_a_key_has_the_smaller_of_its_own_and_the_plans_rate(
    db: Database,
    databases: Databases,
    operator: Operator,
    tenant: Tenant,
    owner: asyncpg.Connection,
    name: str,
    of_key: int | None,
    of_plan: int | None,
    told: int | None,
) -> None:
    await plans.set_plan(operator, name, {"key_requests_per_minute": of_plan})
    await tenants.set_plan(operator, tenant.slug, name)
    async with db.transaction(operator_caller(tenant)) as tx:
        issued = await identity.create_key(tx, NewKey("k"), pepper=PEPPER)
    await owner.execute("UPDATE api_keys SET requests_per_minute = $2 WHERE id = $1", issued.key.id, of_key)
    assert await rates_of(databases, issued.secret) == (name, Rates(key_requests_per_minute=told))
