"""Plans of tests."""

import itertools

from recollect.accounts.plans import service as plans
from recollect.accounts.tenants import service as tenants
from recollect.postgres.operator_sessions import Operator

_serial = itertools.count(1)


async def limit(operator: Operator, tenant: str, **limits: int | None) -> str:
    """Give the tenant of this slug a plan with only these limits, and return its name."""
    plan = f"own-{next(_serial)}-{tenant}"
    await plans.set_plan(operator, plan, limits)
    await tenants.set_plan(operator, tenant, plan)
    return plan
