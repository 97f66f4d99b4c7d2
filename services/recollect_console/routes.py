"""The routes of the console, which the gateway serves."""

from typing import Any

from litestar import Request, Router
from litestar.di import Provide

from recollect.settings import Settings
from recollect_console.access import VisitMiddleware, check_form, visit_of
from recollect_console.pages.ask import AskController
from recollect_console.pages.audit import AuditController
from recollect_console.pages.care import CareController
from recollect_console.pages.commands import CommandsController
from recollect_console.pages.components import ComponentsController
from recollect_console.pages.connect import ConnectController
from recollect_console.pages.deliveries import DeliveryController
from recollect_console.pages.email_domains import EmailDomainController
from recollect_console.pages.erasure import ErasureController
from recollect_console.pages.graph import GraphController
from recollect_console.pages.graphs import GraphSettingsController
from recollect_console.pages.identity_providers import IdentityProviderController
from recollect_console.pages.index import IndexController
from recollect_console.pages.invitations import InvitationController
from recollect_console.pages.jobs import JobsController
from recollect_console.pages.memory import MemoryController
from recollect_console.pages.node import NodeController
from recollect_console.pages.people import PeopleController
from recollect_console.pages.settings import SettingsController
from recollect_console.pages.take_back import TakeBackController
from recollect_console.pages.timeline import TimelineController
from recollect_console.pages.transfer import TransferController
from recollect_console.pages.trusted_issuers import TrustedIssuerController
from recollect_console.pages.usage import UsageController
from recollect_console.pages.webhooks import WebhookController
from recollect_console.rendering import PACKAGE, UNDER, error_page, templates
from recollect_console.visit import Visit
from recollect_gateway.web.styles import asset_routes
from recollect_http.server.disconnects import DisconnectMiddleware, WholeRequestMiddleware

AnyRequest = Request[Any, Any, Any]

ASSETS = (
    "ask.css",
    "timeline.js",
    "console.css",
    "console.js",
    "graph.js",
    "graph_files.js",
    "transfer.js",
    "trusted.js",
    "usage.js",
    "libraries/htmx.min.js",
    "libraries/uplot.min.js",
    "libraries/uplot.min.css",
    "libraries/sigma.min.js",
    "libraries/graphology.min.js",
    "libraries/graphology-library.min.js",
)

PAGES = (
    AskController,
    AuditController,
    CareController,
    CommandsController,
    ConnectController,
    DeliveryController,
    EmailDomainController,
    ErasureController,
    GraphController,
    GraphSettingsController,
    IdentityProviderController,
    InvitationController,
    JobsController,
    MemoryController,
    NodeController,
    PeopleController,
    SettingsController,
    TakeBackController,
    TimelineController,
    TransferController,
    TrustedIssuerController,
    UsageController,
    WebhookController,
)
"""The pages of a tenant and its graphs."""


def console_routers(settings: Settings) -> list[Router]:
    """Pages for members, the choice of an organisation, and what they load; on this machine alone, all components."""
    templates()  # Compiled before a page is asked for.
    return [
        Router(
            "/app/{tenant:str}/{graph:str}",
            route_handlers=list(PAGES),
            middleware=[DisconnectMiddleware(), VisitMiddleware()],
            before_request=check_form,
            dependencies={"visit": Provide(_visit, sync_to_thread=False)},
            exception_handlers={Exception: error_page},
            include_in_schema=False,
        ),
        Router(
            "/",
            route_handlers=[
                IndexController,
                *asset_routes(PACKAGE, ASSETS, under=UNDER),
                *([ComponentsController] if settings.is_local else []),
            ],
            middleware=[WholeRequestMiddleware()],
            exception_handlers={Exception: error_page},
            include_in_schema=False,
        ),
    ]


def _visit(request: AnyRequest) -> Visit:
    """The visit of a request, for handlers."""
    return visit_of(request)
