"""Clients that leave before they are answered: their requests are cancelled.

A server reports that a client has left only to an application that listens, and a running handler does not listen.
So a second task listens while the handler runs, and cancels the request: its statements, computations and waits end,
what it began to write is rolled back, and no alarm is raised. For MCP the SDK does that, once it has the message.

To listen is to take the next part of the body, which must not happen before the caller is known. Until then the
connection itself reports that it was lost (`ClientDisconnect`).
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.lowlevel
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Message, Receive, Scope, Send

DISCONNECT = "recollect.disconnect"
"""The extension of a request's scope by which its server reports that the connection was lost."""

_BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})


class ClientDisconnect:
    """The end of one connection, and the functions that it calls; those that come after it are called at once."""

    def __init__(self) -> None:
        self._callbacks: set[Callable[[], None]] = set()
        self._is_lost = False

    def note_lost(self) -> None:
        """The connection was lost: call all functions."""
        self._is_lost = True
        for callback in tuple(self._callbacks):
            callback()

    @contextmanager
    def callback(self, function: Callable[[], None]) -> Iterator[None]:
        """Call `function` if the connection is lost while the block lasts, or was before."""
        self._callbacks.add(function)
        if self._is_lost:
            function()
        try:
            yield
        finally:
            self._callbacks.discard(function)


def disconnect_of(scope: Scope) -> ClientDisconnect:
    """The end of the request's connection; where the server does not report it, one that never comes."""
    extensions: dict[str, Any] = scope.get("extensions") or {}
    disconnect: ClientDisconnect = extensions.get(DISCONNECT) or ClientDisconnect()
    return disconnect


class DisconnectMiddleware(ASGIMiddleware):
    """Cancels a request whose client leaves before it is answered, also in the middle of its body."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Serve a request as long as its client is there."""
        with anyio.CancelScope() as serving:
            client = WatchedClient(receive, send, serving)
            if not any(name in _BODY_HEADERS and value != b"0" for name, value in scope["headers"]):
                await client.read_nothing()
            watching = asyncio.create_task(client.watch())
            try:
                with disconnect_of(scope).callback(client.end):
                    await next_app(scope, client.receive, client.send)
            finally:
                watching.cancel()


class WholeRequestMiddleware(ASGIMiddleware):
    """Ends a request whose client leaves in the middle of its body; one that came whole is served to its end.

    For pages and OAuth endpoints, where nobody knows who calls. A client that leaves so is no server error.
    """

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Serve a request, unless it breaks off."""
        is_whole = False

        async def watched_receive() -> Any:
            nonlocal is_whole
            message: Any = await receive()
            if message["type"] == "http.disconnect" and not is_whole:
                serving.cancel()
                await anyio.lowlevel.checkpoint()
            is_whole = not message.get("more_body")
            return message

        with anyio.CancelScope() as serving:
            await next_app(scope, watched_receive, send)


class WatchedClient:
    """The client of one request: receives from it and sends to it, until it is answered or has left."""

    def __init__(self, receive: Receive, send: Send, serving: anyio.CancelScope) -> None:
        self._receive, self._send, self._serving = receive, send, serving
        self._first: Any = None
        self._is_read, self._is_over, self._is_answered = asyncio.Event(), asyncio.Event(), False

    async def read_nothing(self) -> None:
        """Read the body of a request that has none, which is there at once: its handler may never ask for it."""
        self._first = await self._next()

    async def receive(self) -> Any:
        """The next message of the request; after its body, `http.disconnect` once it is over."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        if self._is_read.is_set():  # From now on, `watch` receives.
            await self._is_over.wait()
            return {"type": "http.disconnect"}
        return await self._next()

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        self._is_answered = message["type"] == "http.response.body" and not message.get("more_body")
        await self._send(message)

    async def watch(self) -> None:
        """Cancel the request once its client has left."""
        await self._is_read.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.end()

    def end(self) -> None:
        """Cancel the request, unless it is answered: a server sends `http.disconnect` after a whole answer, too."""
        self._is_over.set()
        if not self._is_answered:
            self._serving.cancel()

    async def _next(self) -> Any:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.end()
            await anyio.lowlevel.checkpoint()
        elif not message.get("more_body"):
            self._is_read.set()
        return message
