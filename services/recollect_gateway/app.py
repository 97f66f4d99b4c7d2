"""The composition root: settings in, one ASGI application out."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from uuid import UUID

from litestar import Litestar, Router, asgi
from litestar.datastructures import State
from litestar.di import Provide
from litestar.types import Receive, Scope, Send
from redis.asyncio import Redis

from recollect.accounts.idempotency.model import AnswerVault
from recollect.accounts.identity_providers.relying_party import RelyingParty
from recollect.accounts.oauth.signing.model import Vault
from recollect.accounts.people.breached import BreachedPasswords
from recollect.accounts.token_issuers import Issuers
from recollect.accounts.usage.tally import UsageTally
from recollect.cells.databases import Databases
from recollect.embedding import Embedder, create_embedder, create_previous_embedder
from recollect.embedding.cache import CachedEmbedder
from recollect.fairness.presence import PresenceReporter
from recollect.outbound.http_client import Outbound
from recollect.outbound.mail import Mailer
from recollect.outbound.txt_records import TextRecords
from recollect.postgres.tenant_database import TenantDatabase
from recollect.retrieval.recall.cache import RecallCache
from recollect.retrieval.recall.english_words import load_english
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings
from recollect.settings.database import server_of
from recollect.valkey.caller_changes import caller_change_notifier
from recollect.valkey.change_bus import ChangeBus
from recollect.valkey.change_channel import ChangePublisher
from recollect.valkey.client import connect_redis
from recollect.valkey.rate_limits.limiter import RateLimiter
from recollect.valkey.shared_cache import SharedCache
from recollect_console.routes import console_routers
from recollect_gateway.callers.admission import Admission
from recollect_gateway.callers.credentials import Authenticator
from recollect_gateway.callers.oauth_resources import Resources
from recollect_gateway.callers.rate_limits import add_limit_headers, by_address
from recollect_gateway.callers.remembered_callers import RememberedCallers, remembered_callers
from recollect_gateway.calls import Services
from recollect_gateway.management.guards import CallerMiddleware, within_scope, within_toolsets
from recollect_gateway.management.health import HealthController
from recollect_gateway.management.memory.batches import BatchController
from recollect_gateway.management.memory.changes import ChangeController
from recollect_gateway.management.memory.dismissals import DismissalController
from recollect_gateway.management.memory.distilling import DistillingController, LanguageModelController
from recollect_gateway.management.memory.erasure import ErasureController
from recollect_gateway.management.memory.graph_jobs import GraphJobController
from recollect_gateway.management.memory.graphs import GraphController
from recollect_gateway.management.memory.jobs import JobController
from recollect_gateway.management.memory.memories import MemoryController
from recollect_gateway.management.memory.nodes import NodeController
from recollect_gateway.management.memory.passages import PassageController
from recollect_gateway.management.memory.searching import SearchController
from recollect_gateway.management.memory.transfer import TransferController
from recollect_gateway.management.openapi.document import document_config
from recollect_gateway.management.openapi.documentation import documentation_router
from recollect_gateway.management.openapi.shared_bodies import SHARED
from recollect_gateway.management.tenants.audit import AuditController
from recollect_gateway.management.tenants.email_domains import EmailDomainController
from recollect_gateway.management.tenants.grants import GrantController
from recollect_gateway.management.tenants.identity_providers import IdentityProviderController
from recollect_gateway.management.tenants.keys import KeyController, report_key
from recollect_gateway.management.tenants.members import InvitationController, MemberController
from recollect_gateway.management.tenants.plan import PlanController
from recollect_gateway.management.tenants.sessions import SessionController
from recollect_gateway.management.tenants.tenant import TenantController
from recollect_gateway.management.tenants.trusted_issuers import TrustedIssuerController
from recollect_gateway.management.tenants.usage import UsageController
from recollect_gateway.management.tenants.webhook_deliveries import DeliveryController
from recollect_gateway.management.tenants.webhooks import WebhookController
from recollect_gateway.mcp_endpoint.server_catalogue import RECOLLECT, ServerCatalogue
from recollect_gateway.mcp_endpoint.transport.endpoint import McpEndpoint
from recollect_gateway.oauth.authorization import AuthorizationController
from recollect_gateway.oauth.discovery import DiscoveryController
from recollect_gateway.oauth.documents import KnownClients
from recollect_gateway.oauth.published_keys import PublishedKeys
from recollect_gateway.oauth.registration import RegistrationController
from recollect_gateway.oauth.token_endpoint import TokenController
from recollect_gateway.process.background_tasks import BackgroundTasks
from recollect_gateway.process.readiness import Readiness, awaited_readiness, checked_embedder, reported_readiness
from recollect_gateway.process.usage import UsageMiddleware, flushed_usage
from recollect_gateway.requests.idempotency import IdempotencyMiddleware, databases_of
from recollect_gateway.streaming.streams import Streams
from recollect_gateway.web.account import MembershipController, OwnGrantController, OwnIdentityController
from recollect_gateway.web.forgotten import ForgottenController, ResetController
from recollect_gateway.web.home import home_page
from recollect_gateway.web.joining import JoinController
from recollect_gateway.web.local_owner import LocalOwnerController
from recollect_gateway.web.pages import ASSETS, PACKAGE, compile_templates, error_page
from recollect_gateway.web.passkeys import OwnPasskeyController, PasskeyController
from recollect_gateway.web.providers import ProviderSignInController
from recollect_gateway.web.sign_in import AccountController, SignInController
from recollect_http.access_log import note_route
from recollect_http.address_limits import AddressLimits
from recollect_http.allowed_methods import add_allowed_methods
from recollect_http.failed_keys import FailedKeys
from recollect_http.openapi.schemas import DescribedSchemas
from recollect_http.problems import problem_response
from recollect_http.requests.urlencoded import MAX_FORM_BYTES
from recollect_http.requests.validation import known_parameters
from recollect_http.server.disconnects import DisconnectMiddleware, WholeRequestMiddleware
from recollect_http.server.draining import Drain
from recollect_http.server.fresh_router import FreshRouter
from recollect_http.web.styles import asset_routes, shared_asset_routes

OPENAI = "openai"
"""The embedder that is another server: it may have another model than configured."""


def create_app(
    settings: Settings, *, catalogue: ServerCatalogue = RECOLLECT, on_start: Callable[[], None] | None = None
) -> Litestar:
    """The gateway. Connections open with the application and close with it; `on_start` is called when they are open."""

    @asgi(["/mcp", "/t"], is_mount=True, copy_scope=True)
    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        endpoint: McpEndpoint = scope["litestar_app"].state.mcp_endpoint
        await endpoint(scope, receive, send)

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            compile_templates()
            await _open(app.state, settings, catalogue, stack)
            if on_start is not None:
                on_start()
            yield

    return Litestar(
        state=State({"drain": Drain()}),
        route_handlers=[mcp, HealthController, *_management_api(), _pages(), _oauth(), *console_routers(settings)],
        lifespan=[lifespan],
        exception_handlers={Exception: lambda request, error: problem_response(error, request)},
        before_send=[add_limit_headers, add_allowed_methods, note_route],
        request_max_body_size=settings.max_request_bytes,
        openapi_config=document_config(),
        plugins=[DescribedSchemas(SHARED)],
        logging_config=None,
    )


def _management_api() -> list[Router]:
    """The routes under /v1: those that need a credential, and those that need none."""
    v1 = FreshRouter(
        "/v1",
        route_handlers=[
            GraphController,
            ErasureController,
            KeyController,
            TenantController,
            SessionController,
            MemberController,
            InvitationController,
            IdentityProviderController,
            EmailDomainController,
            GrantController,
            TrustedIssuerController,
            AuditController,
            NodeController,
            BatchController,
            SearchController,
            ChangeController,
            MemoryController,
            TransferController,
            JobController,
            GraphJobController,
            DistillingController,
            LanguageModelController,
            PassageController,
            DismissalController,
            UsageController,
            PlanController,
            WebhookController,
            DeliveryController,
        ],
        middleware=[
            DisconnectMiddleware(),
            CallerMiddleware(),
            UsageMiddleware(),
            IdempotencyMiddleware(),
        ],
        guards=[within_toolsets, within_scope, known_parameters],
        dependencies={
            "db": Provide(_db, sync_to_thread=False),
            "databases": Provide(_databases, sync_to_thread=False),
            "services": Provide(_services, sync_to_thread=False),
        },
        security=[{"apiKey": []}, {"session": [], "tenant": []}],
    )
    open_to_all = FreshRouter(
        "/v1",
        route_handlers=[report_key],
        middleware=[WholeRequestMiddleware()],
        guards=[known_parameters],
        security=[{}],
    )
    return [v1, open_to_all, documentation_router()]


def _pages() -> Router:
    """The pages that people see in a browser."""
    return FreshRouter(
        "/",
        route_handlers=[
            home_page,
            SignInController,
            LocalOwnerController,
            ProviderSignInController,
            AccountController,
            OwnGrantController,
            OwnIdentityController,
            MembershipController,
            JoinController,
            ForgottenController,
            ResetController,
            AuthorizationController,
            PasskeyController,
            OwnPasskeyController,
            *shared_asset_routes(),
            *asset_routes(PACKAGE, ASSETS),
        ],
        middleware=[WholeRequestMiddleware()],
        exception_handlers={Exception: error_page},
    )


def _oauth() -> Router:
    """The endpoints that OAuth clients call without a person."""
    return FreshRouter(
        "/",
        route_handlers=[DiscoveryController, TokenController, RegistrationController],
        request_max_body_size=MAX_FORM_BYTES,
        middleware=[WholeRequestMiddleware()],
        guards=[by_address("oauth", lambda settings: settings.oauth_requests_per_minute)],
    )


async def _open(state: State, settings: Settings, catalogue: ServerCatalogue, stack: AsyncExitStack) -> None:
    """Open what the application works with and put it in `state`; the stack closes everything in reverse order."""
    redis = connect_redis(settings)
    stack.push_async_callback(redis.aclose)
    embedder = create_embedder(settings)
    await load_english()
    encoder, recall_cache = _question_encoder(embedder, settings, stack), _recall_cache(redis, settings, stack)
    if settings.embedder == OPENAI:
        await stack.enter_async_context(checked_embedder(embedder))
    bus = ChangeBus(settings)
    await stack.enter_async_context(bus.running())
    callers = stack.enter_context(remembered_callers(bus, settings.remember_callers_seconds))
    publisher = ChangePublisher(redis)
    stack.push_async_callback(publisher.aclose)
    state.databases = await stack.enter_async_context(_open_databases(redis, settings, callers, publisher))
    state.readiness = Readiness(state.drain, state.databases.all, embedder)
    await stack.enter_async_context(awaited_readiness(state.readiness, server_of(settings.database_url)))
    if settings.exports_metrics:
        await stack.enter_async_context(reported_readiness(state.readiness))
    state.settings = settings
    state.page_address = settings.base_url
    state.pepper = settings.pepper
    state.tally = UsageTally()
    await stack.enter_async_context(flushed_usage(state.databases, state.tally, seconds=settings.usage_flush_seconds))
    state.address_limits = limits = AddressLimits(state.pepper)
    state.limiter = limiter = _rate_limiter(redis, settings)
    stack.push_async_callback(limiter.aclose)
    failed_keys = FailedKeys(limiter, lambda site: limits.of("failed_keys", site, settings.failed_keys_per_minute))
    state.outbound = Outbound(settings)
    stack.push_async_callback(state.outbound.close)
    state.issuers = Issuers(state.outbound)
    state.background_tasks = BackgroundTasks()
    stack.push_async_callback(state.background_tasks.settle, settings.mail_seconds)
    state.resources = Resources.of_settings(settings)
    state.authenticator = Authenticator(
        state.databases,
        state.pepper,
        state.tally.note_key,
        failed_keys,
        state.issuers,
        state.background_tasks.begin,
        callers,
        state.resources,
    )
    presence = PresenceReporter(redis, state.databases.known_cell)
    stack.push_async_callback(presence.aclose)
    state.admission = Admission(limiter, settings, presence)
    state.streams = Streams(bus, state.admission, settings)
    state.drain.end_streams = state.streams.drain
    state.answer_vault = AnswerVault.of(state.pepper)
    _prepare_sign_in(state, settings)
    state.services = Services(state.databases, encoder, settings, recall_cache, state.tally)
    state.mcp_endpoint = McpEndpoint(
        state.services, state.authenticator, state.admission, state.resources, state.streams, catalogue
    )
    await stack.enter_async_context(state.mcp_endpoint.sessions.run())


def _prepare_sign_in(state: State, settings: Settings) -> None:
    """Put in `state` the services by which people sign in, and OAuth clients on their behalf."""
    state.mailer = Mailer.of(settings)
    state.breached = BreachedPasswords.of(settings, state.outbound)
    state.relying_party = RelyingParty(state.issuers, state.outbound)
    state.text_records = TextRecords(settings)
    state.vault, state.published_keys = Vault.of(state.pepper), PublishedKeys(state.databases.home)
    state.known_clients = KnownClients(state.databases.home, state.outbound)


def _open_databases(
    redis: Redis, settings: Settings, callers: RememberedCallers, publisher: ChangePublisher
) -> AbstractAsyncContextManager[Databases]:
    """The databases of all cells. Their commits notify workers, listeners and gateways that remember callers."""
    publish_caller_change = caller_change_notifier(publisher)

    def on_callers_changed(tenant_id: UUID) -> None:
        callers.forget(tenant_id)
        publish_caller_change(tenant_id)

    return Databases.open(settings, redis, publisher.publish, on_callers_changed)


def _rate_limiter(redis: Redis, settings: Settings) -> RateLimiter:
    return RateLimiter(
        redis, wait_seconds=settings.rate_limit_wait_seconds, local_share=settings.rate_limit_local_share
    )


def _question_encoder(embedder: Embedder, settings: Settings, stack: AsyncExitStack) -> QuestionEncoder:
    """The encoder of the configured embedder and, while a model is changed, of the previous one."""
    previous = create_previous_embedder(settings)
    cached_embedder = _cached_embedder(embedder, settings)
    stack.push_async_callback((cached_embedder or embedder).close)
    if previous is None:
        return QuestionEncoder(embedder, cached_embedder)
    cached_previous = _cached_embedder(previous, settings)
    stack.push_async_callback((cached_previous or previous).close)
    return QuestionEncoder(embedder, cached_embedder, previous, cached_previous)


def _cached_embedder(embedder: Embedder, settings: Settings) -> CachedEmbedder | None:
    if not settings.cache_embeddings_enabled:
        return None
    return CachedEmbedder(
        embedder, max_entries=settings.cache_embeddings_maxsize, max_bytes=settings.cache_embeddings_max_bytes
    )


def _recall_cache(redis: Redis, settings: Settings, stack: AsyncExitStack) -> RecallCache | None:
    if not settings.cache_search_enabled:
        return None
    shared = SharedCache(
        redis,
        "recall",
        secret=settings.pepper,
        max_entries=settings.cache_search_maxsize,
        ttl_seconds=settings.cache_search_ttl,
        wait_seconds=settings.cache_search_wait_seconds,
    )
    stack.push_async_callback(shared.settle)
    return RecallCache(shared)


def _databases(scope: Scope) -> Databases:
    return databases_of(scope)


def _db(scope: Scope) -> TenantDatabase:
    """The database of the caller's tenant."""
    return databases_of(scope).of(scope["user"].tenant_id)


def _services(scope: Scope) -> Services:
    services: Services = scope["litestar_app"].state.services
    return replace(services, databases=databases_of(scope))
