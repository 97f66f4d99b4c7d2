"""Counts of calls: kept in memory while requests are served, and stored every few seconds in the background."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import structlog
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, HTTPScope, Message, Receive, Scope, Send
from opentelemetry.instrumentation.utils import suppress_instrumentation

from recollect.accounts.usage import service as usage
from recollect.accounts.usage.model import Counts, count_duration
from recollect.accounts.usage.tally import UsageTally
from recollect.cells.databases import Databases
from recollect_gateway.streaming.streams import OPEN_STREAM

LAST_FLUSH_SECONDS = 5.0
"""How long a gateway that stops tries to store its last counts."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def flushed_usage(databases: Databases, tally: UsageTally, *, seconds: float) -> AsyncIterator[None]:
    """Store the tally every so many seconds, and once more at the end."""
    stopping = asyncio.Event()
    flushing = asyncio.create_task(_keep_flushing(databases, tally, seconds, stopping), name="usage")
    try:
        yield
    finally:
        stopping.set()
        try:
            await asyncio.wait_for(flushing, LAST_FLUSH_SECONDS)
        except TimeoutError:
            log.warning("usage not saved: the database did not answer before the gateway stopped")


async def _keep_flushing(databases: Databases, tally: UsageTally, seconds: float, stopping: asyncio.Event) -> None:
    with suppress_instrumentation():  # Spans are for calls, and this belongs to none.
        while not stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), seconds)
            await usage.flush(databases, tally)


class CountedBody:
    """A request's `receive` that counts the bytes of the body that were read."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.bytes_received = 0

    async def __call__(self) -> Any:
        """The next message of the request."""
        message = await self._receive()
        if message["type"] == "http.request":
            self.bytes_received += len(message["body"])
        return message


class UsageMiddleware(ASGIMiddleware):
    """Counts the calls of routes, for the tenant of the Caller that is at `request.user` by then.

    A call is timed until the last byte of its answer was sent; a stream of events, which has no end, is not timed.
    """

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Serve the request, then count it. A request whose answer broke off has failed."""
        body, status, is_whole = CountedBody(receive), 500, False
        started = time.perf_counter()

        async def watched_send(message: Message) -> None:
            nonlocal status, is_whole
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)
            # A stream whose reader leaves ends without its last part, and without an error.
            is_whole = message["type"] == "http.response.body" and not message.get("more_body")

        try:
            await next_app(scope, body, watched_send)
        finally:
            tally: UsageTally = scope["litestar_app"].state.tally
            is_stream = OPEN_STREAM in scope["state"]
            failed = status >= 400 or not (is_whole or is_stream)
            name = f"{cast(HTTPScope, scope)['method']} {scope['path_template']}"
            durations = () if is_stream else count_duration(time.perf_counter() - started)
            counts = Counts(calls=1, errors=int(failed), bytes_received=body.bytes_received, durations=durations)
            tally.count(scope["user"].tenant_id, "route", name, counts)
