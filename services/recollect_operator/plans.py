"""/operator/v1/plans: what tenants may have and ask for."""

from litestar import Controller, get, put
from litestar.di import NamedDependency
from litestar.params import FromPath, JSONBody

from recollect.accounts.plans import service as plans
from recollect.platform.operator_sessions import Operator
from recollect_gateway.errors import RESPONSES
from recollect_gateway.guards import valid_body
from recollect_gateway.management.pages import Page
from recollect_operator.shapes import ChangePlan, PlanTermsBody, plan_body


class PlanTermsController(Controller):
    """The plans of the deployment."""

    path = "/plans"
    tags = ("plans",)

    @get("/", responses=RESPONSES, summary="List plans")
    async def list_plans(self, operator: NamedDependency[Operator]) -> Page[PlanTermsBody]:
        """Every plan, by name, on one page: operators make them by hand."""
        return Page([plan_body(plan) for plan in await plans.list_plans(operator)], None)

    @put("/{name:str}", responses=RESPONSES, summary="Make or change a plan", before_request=valid_body(ChangePlan))
    async def set_plan(
        self, operator: NamedDependency[Operator], name: FromPath[str], data: JSONBody[ChangePlan]
    ) -> PlanTermsBody:
        """In force with the next call of each tenant that has it. A limit that is not named stays."""
        return plan_body(await plans.set_plan(operator, name, data.named))
