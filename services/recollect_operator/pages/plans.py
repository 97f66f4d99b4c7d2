"""Plans: what each allows, and a form that makes or changes one."""

from litestar import Controller, Response, get, post
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.accounts.plans import service as plans
from recollect.accounts.plans.model import LIMITS, UNLIMITED, Plan
from recollect.errors import Conflict, ErrorCode, InvalidInput, NotFound, RecollectError
from recollect.postgres.operator_sessions import Operator
from recollect_http.web.refusals import SEEN, FormRefusal, mark_of, refusal_of, unchanged_since
from recollect_operator import operations
from recollect_operator.operator_identity import OperatorRequest
from recollect_operator.pages.access import field
from recollect_operator.pages.rendering import go, render

DONE = {"saved": "The plan is saved. It applies from the next call of each tenant that has it."}

LABELS = {
    "graphs": "Graphs",
    "nodes_per_graph": "Entities, facts and placeholders in a graph",
    "observations": "Observations",
    "stored_bytes": "Stored bytes",
    "embeddings_per_day": "Embeddings a day",
    "requests_per_minute": "Requests a minute",
    "key_requests_per_minute": "Requests a minute of one key",
    "concurrent_calls": "Calls at once",
}
"""Each limit, as people read it."""


class PlanPages(Controller):
    """The plans of the deployment."""

    path = "/"

    @get("/plans")
    async def list_plans(self, request: OperatorRequest, operator: NamedDependency[Operator]) -> Response[str]:
        """All plans with their limits."""
        found = await plans.list_plans(operator)
        return render(
            request,
            "plans/list.html",
            done=DONE,
            plans=found,
            columns=["Plan", *(f"#{limit.replace('_', ' ').capitalize()}" for limit in LIMITS)],
            limits=LIMITS,
            unlimited=UNLIMITED,
        )

    @get("/new-plan")
    async def ask_for_new(self, request: OperatorRequest) -> Response[str]:
        """The form of a new plan."""
        return _form(request, None, {})

    @get("/plans/{name:str}")
    async def ask_for_change(
        self, request: OperatorRequest, operator: NamedDependency[Operator], name: FromPath[str]
    ) -> Response[str]:
        """The form of a plan."""
        plan = await _find(operator, name)
        return _form(request, plan, _texts(plan))

    @post("/new-plan")
    async def create(
        self, request: OperatorRequest, state: State, operator: NamedDependency[Operator]
    ) -> Response[str] | Redirect:
        """Make a plan, unless there is one of that name, which another operator may be making at this moment."""
        name = field(request, "name")
        try:
            limits = _limits(request)
            await operations.set_plan(state.cells, request.user, operator, name, limits, check=_require_new)
        except RecollectError as error:
            return _form(request, None, _entered(request), refusal_of(error))
        return go("plans", done="saved")

    @post("/plans/{name:str}")
    async def change(
        self, request: OperatorRequest, state: State, operator: NamedDependency[Operator], name: FromPath[str]
    ) -> Response[str] | Redirect:
        """Change all limits of a plan, in every cell, unless it was changed after the form was made."""
        await _find(operator, name)
        try:
            limits, check = _limits(request), unchanged_since(field(request, SEEN))
            await operations.set_plan(state.cells, request.user, operator, name, limits, check=check)
        except RecollectError as error:
            return _form(request, await _find(operator, name), _entered(request), refusal_of(error))
        return go("plans", done="saved")


async def _find(operator: Operator, name: str) -> Plan:
    plan = next((plan for plan in await plans.list_plans(operator) if plan.name == name), None)
    if plan is None:
        raise NotFound(f"There is no plan {name!r}.")
    return plan


def _require_new(plan: Plan | None) -> None:
    if plan is not None:
        raise Conflict(
            f"There is already a plan {plan.name!r}. Change that one, or choose another name.",
            code=ErrorCode.NAME_TAKEN,
            path="name",
        )


def _form(
    request: OperatorRequest, plan: Plan | None, entered: dict[str, str], refusal: FormRefusal | None = None
) -> Response[str]:
    """The form, with what was entered. `plan` None: of a new one. Next to an outdated entry is the present value."""
    is_outdated = refusal is not None and refusal.is_outdated
    return render(
        request,
        "plans/form.html",
        status=refusal.status if refusal else 200,
        name=plan.name if plan else "",
        entered=entered,
        seen=field(request, SEEN) if refusal and not is_outdated else mark_of(plan),
        now=_texts(plan) if plan and is_outdated else entered,
        labels=LABELS,
        unlimited=UNLIMITED,
        fault=refusal.text if refusal else "",
    )


def _texts(plan: Plan) -> dict[str, str]:
    limits = {limit: getattr(plan, limit) for limit in LIMITS}
    return {limit: "" if value is None else str(value) for limit, value in limits.items()}


def _entered(request: OperatorRequest) -> dict[str, str]:
    return {name: field(request, name) for name in ("name", *LIMITS)}


def _limits(request: OperatorRequest) -> dict[str, int | None]:
    """The limits of the form; an empty one is none. Raises InvalidInput."""
    limits: dict[str, int | None] = {}
    for limit in LIMITS:
        entered = field(request, limit).replace(",", "")
        if entered and not (entered.isascii() and entered.isdecimal() and len(entered) <= 16):
            raise InvalidInput(f"{LABELS[limit]}: a whole number, or nothing for no limit", path=limit)
        limits[limit] = int(entered) if entered else None
    return limits
