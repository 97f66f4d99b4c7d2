"""The routes of the console, which the gateway serves."""

from litestar import Router
from litestar.di import Provide

from recollect.settings import Settings
from recollect_console.access import VisitMiddleware, check_form, visit_of
from recollect_console.pages.ask import AskPages
from recollect_console.pages.audit import AuditPages
from recollect_console.pages.care import CarePages
from recollect_console.pages.commands import CommandsPages
from recollect_console.pages.components import ComponentsPages
from recollect_console.pages.connect import ConnectPages
from recollect_console.pages.deliveries import DeliveryPages
from recollect_console.pages.email_domains import EmailDomainPages
from recollect_console.pages.erasure import ErasurePages
from recollect_console.pages.graph import GraphPages
from recollect_console.pages.graphs import GraphSettingsPages
from recollect_console.pages.identity_providers import IdentityProviderPages
from recollect_console.pages.index import IndexPages
from recollect_console.pages.invitations import InvitationPages
from recollect_console.pages.jobs import JobsPages
from recollect_console.pages.memory import MemoryPages
from recollect_console.pages.node import NodePages
from recollect_console.pages.organisation_deletion import OrganisationDeletionPages
from recollect_console.pages.people import PeoplePages
from recollect_console.pages.settings import SettingsPages
from recollect_console.pages.several import SeveralPages
from recollect_console.pages.take_back import TakeBackPages
from recollect_console.pages.timeline import TimelinePages
from recollect_console.pages.transfer import TransferPages
from recollect_console.pages.trusted_issuers import TrustedIssuerPages
from recollect_console.pages.usage import UsagePages
from recollect_console.pages.webhooks import WebhookPages
from recollect_console.rendering import PACKAGE, UNDER, error_page, templates
from recollect_console.visit import Visit
from recollect_http.requests import AnyRequest
from recollect_http.server.disconnects import DisconnectMiddleware, WholeRequestMiddleware
from recollect_http.server.fresh_router import FreshRouter
from recollect_http.web.styles import asset_routes

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
    AskPages,
    AuditPages,
    CarePages,
    CommandsPages,
    ConnectPages,
    DeliveryPages,
    EmailDomainPages,
    ErasurePages,
    GraphPages,
    GraphSettingsPages,
    IdentityProviderPages,
    InvitationPages,
    JobsPages,
    MemoryPages,
    NodePages,
    PeoplePages,
    SettingsPages,
    OrganisationDeletionPages,
    SeveralPages,
    TakeBackPages,
    TimelinePages,
    TransferPages,
    TrustedIssuerPages,
    UsagePages,
    WebhookPages,
)
"""The pages of a tenant and its graphs."""


def console_routers(settings: Settings) -> list[Router]:
    """Pages for members, the choice of an organisation, and what they load; on this machine alone, all components."""
    templates()  # Compiled before a page is asked for.
    return [
        FreshRouter(
            "/app/{tenant:str}/{graph:str}",
            route_handlers=list(PAGES),
            middleware=[DisconnectMiddleware(), VisitMiddleware()],
            before_request=check_form,
            dependencies={"visit": Provide(_visit, sync_to_thread=False)},
            exception_handlers={Exception: error_page},
            include_in_schema=False,
        ),
        FreshRouter(
            "/",
            route_handlers=[
                IndexPages,
                *asset_routes(PACKAGE, ASSETS, under=UNDER),
                *([ComponentsPages] if settings.is_local else []),
            ],
            middleware=[WholeRequestMiddleware()],
            exception_handlers={Exception: error_page},
            include_in_schema=False,
        ),
    ]


def _visit(request: AnyRequest) -> Visit:
    """The visit of a request, for handlers."""
    return visit_of(request)
