"""Admission: how many requests a caller, or an address, may make in a minute, and how many at once.

Both transports call it once for each request: when the caller is known, and before the body is read. Every answer tells
what is left of the limits in the fields `RateLimit` and `RateLimit-Policy`, as of
draft-ietf-httpapi-ratelimit-headers-10: lists of strings with parameters (RFC 9651).
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

from cachetools import LRUCache
from litestar.connection import ASGIConnection
from litestar.datastructures import MutableScopeHeaders
from litestar.handlers import BaseRouteHandler
from litestar.types import Message, Scope

from recollect.caller import Caller
from recollect.errors import ErrorCode, TooManyRequests, Unavailable
from recollect.fairness.fair_queue import FairQueue
from recollect.fairness.presence import PresenceReporter
from recollect.fairness.shares import Shares
from recollect.fairness.slots import Slot, acquire_slot
from recollect.settings import Settings
from recollect.telemetry import metrics
from recollect.valkey.rate_limits.limiter import RateLimiter
from recollect.valkey.rate_limits.model import LimitState, RateLimit, RateLimited
from recollect_gateway.callers.browser_sessions import TENANT_HEADER
from recollect_http.address_limits import AddressLimits
from recollect_http.client_addresses import site_of_client

CALL_WAIT_SECONDS = 1.0
"""How long a call waits for a place, where its tenant has as many calls under way as it may."""

RESETS_PER_HOUR = 5
"""Links for a new password that are sent to one address in an hour, so that nobody can fill a stranger's mailbox."""

REMEMBERED_CREDENTIALS = 10_000
"""Credentials that a gateway remembers: so many that a rate refused, with their limits, and so many admitted ones."""

_CREDENTIALS = frozenset({b"authorization", b"cookie", TENANT_HEADER.encode()})
_STANDINGS = "recollect.standings"

AnyConnection = ASGIConnection[Any, Any, Any, Any]
Guard = Callable[[AnyConnection, BaseRouteHandler], Awaitable[None]]


class Admission:
    """Counts the requests of callers, and gives their calls places."""

    def __init__(self, limiter: RateLimiter, settings: Settings, presence: PresenceReporter | None = None) -> None:
        self._limiter, self._presence = limiter, presence
        self._calls = Shares(settings.concurrent_calls_per_tenant)
        self._limits: LRUCache[bytes, list[RateLimit]] = LRUCache(REMEMBERED_CREDENTIALS)
        self._tenants: LRUCache[bytes, UUID] = LRUCache(REMEMBERED_CREDENTIALS)
        self._slots = FairQueue(settings.calls_at_work, settings.calls_at_work_beside_others)
        self._wait_seconds = settings.call_wait_seconds

    def raise_if_recently_refused(self, scope: Scope) -> None:
        """Raise RateLimited for a credential that was refused a moment ago, without looking it up again."""
        try:
            self._limiter.raise_if_recently_refused(*self._limits.get(_credential(scope), ()))
        except RateLimited as error:
            _note_standings(scope, error.states)
            raise

    @contextmanager
    def expect_caller(self, scope: Scope) -> Iterator[None]:
        """Let other calls give way already, while the caller is looked up and admitted inside the block.

        The tenant is that of the credential's last admission. It decides nothing but who gives way.
        """
        tenant_id = self._tenants.get(_credential(scope))
        if tenant_id is None:
            yield
            return
        with self._slots.expecting(tenant_id):
            yield

    @asynccontextmanager
    async def admit(self, scope: Scope, caller: Caller) -> AsyncIterator[None]:
        """A place for a call, which is served inside the block to the end of its answer. Raises TooManyRequests."""
        self._tenants[_credential(scope)] = caller.tenant_id
        limits = limits_of(caller)
        try:
            await take(self._limiter, scope, *limits)
        except RateLimited:
            self._limits[_credential(scope)] = limits
            raise
        limit = caller.rates.concurrent_calls or self._calls.limit
        key = caller.tenant_id, limit  # Where the plan changes, new calls have new places.
        async with AsyncExitStack() as stack:
            try:
                permit = self._calls.acquire(key, wait_seconds=CALL_WAIT_SECONDS, limit=limit, queue=limit)
                await stack.enter_async_context(permit)
            except TimeoutError:
                metrics.record_refused_request("concurrent_calls")
                raise TooManyRequests(
                    f"This tenant has {limit} calls under way at this gateway, and may not have more. Try again when "
                    "one of them has ended.",
                    code=ErrorCode.TOO_MANY_CONCURRENT_CALLS,
                ) from None
            yield

    @asynccontextmanager
    async def take_slot(self, caller: Caller) -> AsyncIterator[Slot]:
        """A slot to work on a call of this tenant, once its turn comes. Raises Unavailable where it comes too late."""
        async with AsyncExitStack() as stack:
            try:
                with metrics.waiting_call():
                    turn = acquire_slot(self._slots, caller.tenant_id, wait_seconds=self._wait_seconds)
                    slot = await stack.enter_async_context(turn)
            except TimeoutError:
                metrics.record_refused_request("calls_at_work")
                raise Unavailable(
                    f"This call waited {self._wait_seconds:g} seconds for its turn. Try again in a moment, with fewer "
                    "calls at once.",
                    code=ErrorCode.BUSY,
                ) from None
            if self._presence is not None and not self._slots.waiting(caller.tenant_id):
                self._presence.note(caller.tenant_id)
            yield slot


def limits_of(caller: Caller) -> list[RateLimit]:
    """The rate limits of a caller: the narrower one, its key's, first."""
    tenant = f"recollect:rate:{{{caller.tenant_id}}}"
    limits = (
        ("key", f"{tenant}:{caller.subject}", caller.rates.key_requests_per_minute),
        ("tenant", tenant, caller.rates.requests_per_minute),
    )
    return [RateLimit(policy, subject, quota) for policy, subject, quota in limits if quota is not None]


def by_address(bucket: str, per_minute: Callable[[Settings], int]) -> Guard:
    """A guard for routes that need no credential: it limits the requests of one client address in a minute.

    Requests to routes with the same `bucket` are counted together; `per_minute` finds the limit in the settings.
    """

    async def within_rate(connection: AnyConnection, _: BaseRouteHandler) -> None:
        state = connection.app.state
        limits: AddressLimits = state.address_limits
        site = site_of_client(connection)
        await take(state.limiter, connection.scope, limits.of(bucket, site, per_minute(state.settings)))

    return within_rate


async def take_for_account(request: AnyConnection, email: str, *, browser: str | None = None) -> None:
    """Count one try to sign in to an account, from whatever address and whether or not the account exists.

    `browser`: one in which somebody signed in to the account before. Its tries are counted apart, so that nobody else
    uses them up. Raises RateLimited.
    """
    if browser is None:
        await _take_for_account(request, "account", email)
    else:
        await _take_for_account(request, "account-in-browser", f"{browser} {email}")


async def take_for_own_account(request: AnyConnection, person_id: UUID) -> None:
    """Count one password that a signed-in person enters, apart from tries to sign in, which anybody may make.

    Raises RateLimited.
    """
    await _take_for_account(request, "own-account", str(person_id))


async def _take_for_account(request: AnyConnection, bucket: str, account: str) -> None:
    state = request.app.state
    limits: AddressLimits = state.address_limits
    limit = limits.of(bucket, account, state.settings.sign_ins_per_minute)
    await take(state.limiter, request.scope, replace(limit, policy="account"))


async def take_for_reset(request: AnyConnection, email: str) -> None:
    """Count one request for a link by mail to this address, whether or not it has an account. Raises RateLimited."""
    state = request.app.state
    limits: AddressLimits = state.address_limits
    limit = replace(limits.of("reset-of", email, RESETS_PER_HOUR), policy="account", seconds=3600)
    await take(state.limiter, request.scope, limit)


async def take(limiter: RateLimiter, scope: Scope, *limits: RateLimit) -> None:
    """Count a request against these limits, and have its answer tell what is left of them; raises RateLimited."""
    try:
        _note_standings(scope, (await limiter.take(*limits)).states)
    except RateLimited as error:
        _note_standings(scope, error.states)
        raise


async def add_limit_headers(message: Message, scope: Scope) -> None:
    """A hook before an answer is sent: add what is left of the limits against which its request was counted."""
    states = scope["state"].get(_STANDINGS)
    if not states or message["type"] != "http.response.start":
        return
    headers = MutableScopeHeaders.from_message(message)
    headers["RateLimit-Policy"] = ", ".join(
        f'"{state.limit.policy}";q={state.limit.quota};w={state.limit.seconds}' for state in states
    )
    headers["RateLimit"] = ", ".join(
        f'"{state.limit.policy}";r={state.remaining};t={state.reset_seconds}' for state in states
    )


def _credential(scope: Scope) -> bytes:
    """A hash by which a credential is known, and which is none itself: of a key, or of a session and its tenant."""
    headers = [b"%s:%s" % (name, value) for name, value in scope["headers"] if name in _CREDENTIALS]
    return hashlib.sha256(b"\n".join(headers)).digest()


def _note_standings(scope: Scope, states: Sequence[LimitState]) -> None:
    scope["state"][_STANDINGS] = states  # Copies of a scope share its `state` and nothing else.
