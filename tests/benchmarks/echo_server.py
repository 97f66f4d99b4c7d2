"""The first floor: a bare echo tool of the SDK, served as the gateway serves its tools, on the port in argv[1].

The Litestar mount, the mode of the session manager and the HTTP server are the same; there are no credentials, no
catalogue and no database. The tool takes a text as long as the arguments of the measured call, and returns one as long
as its reply.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import uvicorn
from litestar import Litestar, asgi
from litestar.types import Receive, Scope, Send
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolRequestParams, CallToolResult, TextContent

from recollect.settings import Settings
from recollect_http.server.uvicorn_server import server_config


async def echo(_: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
    """`text`, cut or padded to `length` characters."""
    arguments = params.arguments or {}
    text = str(arguments["text"])[: arguments["length"]].ljust(arguments["length"], "x")
    return CallToolResult(content=[TextContent(type="text", text=text)])


def create_app() -> Litestar:
    """The echo server."""
    sessions = StreamableHTTPSessionManager(Server("echo", on_call_tool=echo), stateless=True, json_response=False)

    @asgi("/mcp", is_mount=True, copy_scope=True)
    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        await sessions.handle_request(cast(Any, scope), cast(Any, receive), cast(Any, send))

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        async with sessions.run():
            yield

    return Litestar([mcp], lifespan=[lifespan], openapi_config=None, logging_config=None)


if __name__ == "__main__":
    uvicorn.Server(server_config(create_app(), Settings(port=int(sys.argv[1])))).run()
