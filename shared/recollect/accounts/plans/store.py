"""One function per query of `queries.sql`. They run as the owner of the database, not as the gateway."""

from collections.abc import Mapping

import msgspec

from recollect.accounts.plans.model import Plan
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries

queries = Queries(__package__)


async def list_plans(operator: Operator) -> list[Plan]:
    """Every plan, by name."""
    return [Plan(**row) for row in await operator.fetch(queries.list_plans)]


async def lock_plan(operator: Operator, name: str) -> Plan | None:
    """A plan, locked until this transaction ends; None if there is no plan of that name."""
    return await operator.fetch_object(queries.lock_plan, Plan, name=name)


async def has_plan(operator: Operator, name: str) -> bool:
    """Whether there is a plan of that name."""
    return await operator.fetchval(queries.has_plan, name=name)


async def insert_plan(operator: Operator, name: str) -> bool:
    """Make a plan without limits; False if there is one of that name."""
    return await operator.fetchval(queries.insert_plan, name=name) is not None


async def set_plan(operator: Operator, name: str, limits: Mapping[str, int | None]) -> Plan:
    """Make a plan with these limits, or change these limits of an existing plan."""
    row = await operator.fetchrow(queries.set_plan, name=name, limits=msgspec.json.encode(limits).decode())
    assert row is not None
    return Plan(**row)
