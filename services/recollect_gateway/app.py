"""The composition root: settings in, one ASGI application out."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from litestar import Litestar, Router, asgi
from litestar.datastructures import State
from litestar.di import Provide
from litestar.middleware import DefineMiddleware
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import Receive, Scope, Send

from recollect import __version__
from recollect.platform.cache import connect_redis
from recollect.platform.db import Database
from recollect.platform.embedding import create_embedder
from recollect.platform.queue import Wakeups
from recollect.settings import Settings
from recollect_gateway.credentials import Authenticator
from recollect_gateway.errors import problem_response
from recollect_gateway.guards import CallerMiddleware
from recollect_gateway.management.graphs import GraphController
from recollect_gateway.management.health import HealthController
from recollect_gateway.management.keys import KeyController
from recollect_gateway.management.transfer import TransferController
from recollect_gateway.mcp_endpoint.endpoint import McpEndpoint
from recollect_gateway.mcp_endpoint.tool import Services


def create_app(settings: Settings) -> Litestar:
    """The gateway. Connections open with the application and close with it."""

    @asgi(["/mcp", "/t"], is_mount=True, copy_scope=True)
    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        endpoint: McpEndpoint = scope["litestar_app"].state.mcp_endpoint
        await endpoint(scope, receive, send)

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await _open(app.state, settings, stack)
            yield

    v1 = Router(
        "/v1",
        route_handlers=[GraphController, KeyController, TransferController],
        middleware=[DefineMiddleware(CallerMiddleware, exclude_http_methods=[])],  # by default OPTIONS has no caller
        dependencies={"db": Provide(_db, sync_to_thread=False)},
        security=[{"apiKey": []}],
    )
    return Litestar(
        [mcp, HealthController, v1],
        lifespan=[lifespan],
        exception_handlers={Exception: lambda request, error: problem_response(error, request)},
        request_max_body_size=settings.max_request_bytes,
        openapi_config=_openapi(),
        logging_config=None,
    )


async def _open(state: State, settings: Settings, stack: AsyncExitStack) -> None:
    redis = connect_redis(settings)
    stack.push_async_callback(redis.aclose)
    wakeups = Wakeups(redis)
    stack.push_async_callback(wakeups.aclose)
    embedder = create_embedder(settings)
    stack.push_async_callback(embedder.close)
    state.db = await stack.enter_async_context(
        Database.connect(settings.database_url, settings=settings, on_commit=wakeups.notify)
    )
    state.settings = settings
    state.pepper = settings.key_secret.get_secret_value().encode()
    state.authenticator = Authenticator(state.db, state.pepper)
    state.mcp_endpoint = McpEndpoint(Services(state.db, embedder, settings), state.authenticator)
    await stack.enter_async_context(state.mcp_endpoint.sessions.run())


def _db(state: State) -> Database:
    db: Database = state.db
    return db


def _openapi() -> OpenAPIConfig:
    bearer = SecurityScheme(type="http", scheme="bearer", description="An API key: rcl_…")
    return OpenAPIConfig(
        title="Recollect management API",
        version=__version__,
        # Below its path the framework answers 404 in HTML: the path is the document's own.
        path="/v1/openapi.json",
        render_plugins=[JsonRenderPlugin(path="/")],
        components=Components(security_schemes={"apiKey": bearer}),
    )
