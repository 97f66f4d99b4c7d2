"""/operator/v1/plans: the limits of what tenants may store and request."""

from typing import Annotated

from litestar import Controller, get, put
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter

from recollect.accounts.plans import service as plans
from recollect.postgres.operator_sessions import Operator
from recollect_http.pages import Page
from recollect_http.problems import RESPONSES
from recollect_http.requests.validation import valid_body
from recollect_operator import operations
from recollect_operator.operator_identity import OperatorRequest
from recollect_operator.shapes import ChangePlan, PlanTermsBody, plan_body

PlanInPath = Annotated[
    str, PathParameter(description="Name of the plan, 1 to 63 of the characters a-z, 0-9 and -, and no - at its ends")
]


class PlanTermsController(Controller):
    """The plans of the deployment."""

    path = "/plans"
    tags = ("plans",)

    @get("/", responses=RESPONSES, response_description="All plans of the deployment.", summary="List plans")
    async def list_plans(self, operator: NamedDependency[Operator]) -> Page[PlanTermsBody]:
        """List all plans, sorted by name, on one page: operators create them by hand."""
        return Page([plan_body(plan) for plan in await plans.list_plans(operator)], None)

    @put(
        "/{name:str}",
        responses=RESPONSES,
        response_description="The plan with all its limits.",
        summary="Create or change a plan",
        before_request=valid_body(ChangePlan),
    )
    async def set_plan(
        self,
        request: OperatorRequest,
        operator: NamedDependency[Operator],
        state: State,
        name: PlanInPath,
        data: JSONBody[ChangePlan],
    ) -> PlanTermsBody:
        """Create a plan or change its limits. Omitted limits stay.

        The change takes effect with the next call of each tenant with this plan, in every cell. The response is 503 if
        a cell is unavailable: the plan has then been changed in the home cell, and the other cells get it when the
        request is sent again.
        """
        return plan_body(await operations.set_plan(state.cells, request.user, operator, name, data.named))
