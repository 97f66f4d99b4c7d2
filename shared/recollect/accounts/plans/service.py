"""Use cases of operators: list plans, make and change them."""

from collections.abc import Mapping

from recollect.accounts.operator_log import service as operator_log
from recollect.accounts.operator_log.model import OperatorAction
from recollect.accounts.plans import store
from recollect.accounts.plans.model import LIMITS, Plan, checked_limits
from recollect.caller import Check, unconditional
from recollect.errors import NotFound
from recollect.postgres.operator_sessions import Operator
from recollect.valkey.caller_changes import EVERYBODY


async def list_plans(operator: Operator) -> list[Plan]:
    """Every plan, by name."""
    return await store.list_plans(operator)


async def set_plan(
    operator: Operator, name: str, limits: Mapping[str, int | None], *, check: Check[Plan | None] = unconditional
) -> Plan:
    """Make a plan, or change the limits that are named (None takes one away); in force with the next call.

    `check` gets the plan as it is, None where there is none. Raises InvalidInput, and as `check` does.
    """
    checked = checked_limits(name, limits)
    async with operator.transaction():
        # A plan that does not exist cannot be locked: whoever inserts it first makes it, and others wait and see it.
        is_new = await store.insert_plan(operator, name)
        check(None if is_new else await store.lock_plan(operator, name))
        plan = await store.set_plan(operator, name, checked)
        operator.note_act(EVERYBODY)
        await operator_log.record(operator, OperatorAction.PLAN_SET, f"plan:{name}", limits=checked)
    return plan


async def share_plan(home: Operator, operator: Operator, name: str) -> None:
    """Copy a plan with all its limits from home to another cell. Raises NotFound."""
    async with home.transaction():  # The lock keeps two changes at once from copying old limits.
        plan = await store.lock_plan(home, name)
        if plan is None:
            raise _unknown(name)
        operator.note_act(EVERYBODY)
        await store.set_plan(operator, name, {limit: getattr(plan, limit) for limit in LIMITS})


async def require_plan(operator: Operator, name: str) -> None:
    """Raise NotFound if there is no such plan."""
    if not await store.has_plan(operator, name):
        raise _unknown(name)


def _unknown(name: str) -> NotFound:
    return NotFound(f"There is no plan {name!r}. `recollect plans list` lists the plans.", path="plan")
