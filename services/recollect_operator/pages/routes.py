"""The routes of the pages of operators, which the operator API's process serves."""

from litestar import Router, get
from litestar.di import Provide
from litestar.response import Redirect

from recollect_http.requests.validation import known_parameters_or
from recollect_http.server.fresh_router import FreshRouter
from recollect_http.web.rendering import go_to
from recollect_http.web.styles import shared_asset_routes
from recollect_operator.cells import operator_of_request
from recollect_operator.pages.access import SessionMiddleware, check_form
from recollect_operator.pages.cells import CellPages
from recollect_operator.pages.health import HealthPages
from recollect_operator.pages.log import LogPages
from recollect_operator.pages.navigation import ROOT
from recollect_operator.pages.plans import PlanPages
from recollect_operator.pages.rendering import DONE, address, error_page, templates
from recollect_operator.pages.sign_in import SignInPages
from recollect_operator.pages.tenants import TenantPages

PAGES = (TenantPages, PlanPages, CellPages, HealthPages, LogPages)
"""The pages for operators who are signed in."""


def page_routers() -> list[Router]:
    """The pages, those for whoever is not signed in yet, and what they load."""
    templates()  # Compiled before a page is asked for.
    return [
        FreshRouter(
            ROOT,
            route_handlers=list(PAGES),
            middleware=[SessionMiddleware()],
            guards=[known_parameters_or(DONE)],
            before_request=check_form,
            dependencies={"operator": Provide(operator_of_request)},
            exception_handlers={Exception: error_page},
            include_in_schema=False,
        ),
        FreshRouter(
            "/",
            route_handlers=[SignInPages, first_page, *shared_asset_routes()],
            before_request=check_form,
            exception_handlers={Exception: error_page},
            include_in_schema=False,
        ),
    ]


@get(["/", ROOT], sync_to_thread=False)
def first_page() -> Redirect:
    """Lead to the first page, which asks to sign in."""
    return go_to(address("tenants"))
