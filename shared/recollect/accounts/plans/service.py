"""Use cases of operators: list plans, make and change them."""

from collections.abc import Mapping

from recollect.accounts.plans import store
from recollect.accounts.plans.model import Plan, checked_limits
from recollect.errors import NotFound
from recollect.platform.db import Operator


async def list_plans(operator: Operator) -> list[Plan]:
    """Every plan, by name."""
    return await store.list_plans(operator)


async def set_plan(operator: Operator, name: str, limits: Mapping[str, int | None]) -> Plan:
    """Make a plan, or change the limits that are named (None takes one away); in force with the next call.

    Raises InvalidInput.
    """
    return await store.set_plan(operator, name, checked_limits(name, limits))


async def require_plan(operator: Operator, name: str) -> None:
    """Raise NotFound where there is no such plan."""
    if not await store.has_plan(operator, name):
        raise NotFound(f"There is no plan {name!r}. `recollect plans list` tells them.", path="plan")
