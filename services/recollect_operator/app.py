"""The composition root of the operator API and its pages: settings in, one ASGI application out."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from litestar import Litestar, get
from litestar.datastructures import State
from litestar.di import Provide

from recollect.postgres.connections import OPERATOR_ROLE, OWNER_ROLE
from recollect.settings import Settings
from recollect.valkey.client import connect_redis
from recollect.valkey.rate_limits.limiter import RateLimiter
from recollect_http.access_log import note_route
from recollect_http.address_limits import AddressLimits
from recollect_http.allowed_methods import add_allowed_methods
from recollect_http.failed_keys import FailedKeys
from recollect_http.openapi.schemas import DescribedSchemas
from recollect_http.problems import problem_response
from recollect_http.requests.validation import known_parameters
from recollect_http.server.fresh_router import FreshRouter
from recollect_operator.cells import OperatorCells, operator_of_request
from recollect_operator.deployment import CellController
from recollect_operator.document import document_config
from recollect_operator.identity import IdentityMiddleware, KeyIdentities, owner
from recollect_operator.pages.routes import page_routers
from recollect_operator.plans import PlanTermsController
from recollect_operator.records import ErasureReceiptController
from recollect_operator.tenants import TenantRecordController

MAX_BODY_BYTES = 64 * 1024


def create_app(settings: Settings, *, as_owner: bool = False) -> Litestar:
    """The operator API and the pages of operators, for holders of an operator's key.

    `as_owner`: the API within a process that has the owner's connection. It asks for no key, so it must
    not be served.
    """

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.settings = settings
            app.state.pepper = settings.pepper
            app.state.page_address = settings.operator_address
            await (_open_as_owner if as_owner else _open)(app.state, settings, stack)
            yield

    pages = [] if as_owner else page_routers()  # A process that asks for no key serves no pages.
    api = FreshRouter(
        "/operator/v1",
        route_handlers=[TenantRecordController, PlanTermsController, ErasureReceiptController, CellController],
        middleware=[IdentityMiddleware()],
        guards=[known_parameters],
        dependencies={"operator": Provide(operator_of_request)},
        security=[{"operatorKey": []}],
    )
    return Litestar(
        [api, live, *pages],
        lifespan=[lifespan],
        exception_handlers={Exception: lambda request, error: problem_response(error, request)},
        before_send=[add_allowed_methods, note_route],
        request_max_body_size=MAX_BODY_BYTES,
        openapi_config=document_config(),
        plugins=[DescribedSchemas()],
        logging_config=None,
    )


@get("/health/live", include_in_schema=False)
async def live() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


async def _open(state: State, settings: Settings, stack: AsyncExitStack) -> None:
    state.redis = redis = connect_redis(settings)
    stack.push_async_callback(redis.aclose)
    limiter = RateLimiter(
        redis, wait_seconds=settings.rate_limit_wait_seconds, local_share=settings.rate_limit_local_share
    )
    stack.push_async_callback(limiter.aclose)
    limits = AddressLimits(state.pepper)
    failed_keys = FailedKeys(limiter, lambda site: limits.of("operator_keys", site, settings.failed_keys_per_minute))
    cells = OperatorCells.connect(settings, OPERATOR_ROLE, lambda cell_settings: cell_settings.operator_database_url)
    state.cells = await stack.enter_async_context(cells)
    state.identify = KeyIdentities(state.cells.home, state.pepper, failed_keys)


async def _open_as_owner(state: State, settings: Settings, stack: AsyncExitStack) -> None:
    cells = OperatorCells.connect(settings, OWNER_ROLE, lambda cell_settings: cell_settings.migration_url)
    state.cells = await stack.enter_async_context(cells)
    state.identify = owner
