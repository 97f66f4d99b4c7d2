"""Admission: what a caller, or an address, may ask of the service in a minute and at once.

Both transports ask here, once for each request: when it is known who calls, and before the body is read. What is left
of the limits is told by the fields `RateLimit` and `RateLimit-Policy` of whatever is answered, as of
draft-ietf-httpapi-ratelimit-headers-10: lists of strings with parameters (RFC 9651).
"""

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from cachetools import LRUCache
from litestar.connection import ASGIConnection
from litestar.datastructures import MutableScopeHeaders
from litestar.handlers import BaseRouteHandler
from litestar.types import Message, Scope

from recollect.caller import Caller
from recollect.errors import ErrorCode, TooManyRequests, Unavailable
from recollect.platform import metrics
from recollect.platform.fair_queue import FairQueue
from recollect.platform.presence import PresenceTeller
from recollect.platform.rate_limits.limiter import RateLimiter
from recollect.platform.rate_limits.model import RateLimit, RateLimited, Standing
from recollect.platform.shares import Shares
from recollect.platform.slots import Slot, held_slot
from recollect.settings import Settings
from recollect_gateway.addresses import site_of_client
from recollect_gateway.web.forms import TENANT_HEADER

CALL_WAIT_SECONDS = 1.0
"""How long a call waits for one of its tenant's to end, where as many as may are served already."""

RESETS_PER_HOUR = 5
"""Links for another password that are sent to one address in an hour: nobody fills a stranger's mailbox."""

REMEMBERED_CREDENTIALS = 10_000
"""Credentials that were refused for a rate, whose limits a gateway remembers; and that were admitted."""

_CREDENTIALS = frozenset({b"authorization", b"cookie", TENANT_HEADER.encode()})
_STANDINGS = "recollect.standings"

AnyConnection = ASGIConnection[Any, Any, Any, Any]
Guard = Callable[[AnyConnection, BaseRouteHandler], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class AddressLimits:
    """The limits of clients by their address, whose names in Redis do not tell it."""

    secret: bytes

    def of(self, what: str, site: str, per_minute: int) -> RateLimit:
        """How often this client may do that, in a minute."""
        digest = hashlib.blake2b(site.encode(), key=self._key, digest_size=16).hexdigest()
        return RateLimit("address", f"recollect:rate:{{{what}:{digest}}}", per_minute)

    @property
    def _key(self) -> bytes:
        return hashlib.blake2b(self.secret, person=b"recollect site").digest()


class Admission:
    """Counts the requests of callers, and gives their calls places."""

    def __init__(self, limiter: RateLimiter, settings: Settings, presence: PresenceTeller | None = None) -> None:
        self._limiter, self._presence = limiter, presence
        self._calls = Shares(settings.concurrent_calls_per_tenant)
        self._limits: LRUCache[bytes, list[RateLimit]] = LRUCache(REMEMBERED_CREDENTIALS)
        self._tenants: LRUCache[bytes, UUID] = LRUCache(REMEMBERED_CREDENTIALS)
        self._at_work = FairQueue(settings.calls_at_work, settings.calls_at_work_beside_others)
        self._wait_seconds = settings.call_wait_seconds

    def require_unrefused(self, scope: Scope) -> None:
        """Raise RateLimited for a credential that was refused a moment ago, without looking it up again."""
        try:
            self._limiter.require_unrefused(*self._limits.get(_credential(scope), ()))
        except RateLimited as reached:
            _note(scope, reached.standings)
            raise

    @contextmanager
    def expected(self, scope: Scope) -> Iterator[None]:
        """Have others give way already while the caller is looked up and admitted inside.

        Whose the credential was when it was last admitted gives no right but that.
        """
        tenant_id = self._tenants.get(_credential(scope))
        if tenant_id is None:
            yield
            return
        with self._at_work.expecting(tenant_id):
            yield

    @asynccontextmanager
    async def admitted(self, scope: Scope, caller: Caller) -> AsyncIterator[None]:
        """Serve a call inside, until the last of its answer. Raises TooManyRequests."""
        self._tenants[_credential(scope)] = caller.tenant_id
        limits = limits_of(caller)
        try:
            await take(self._limiter, scope, *limits)
        except RateLimited:
            self._limits[_credential(scope)] = limits
            raise
        most = caller.rates.concurrent_calls or self._calls.limit
        key = caller.tenant_id, most  # Where the plan changes, new calls have new places.
        async with AsyncExitStack() as stack:
            try:
                place = self._calls.held(key, wait_seconds=CALL_WAIT_SECONDS, limit=most, queue=most)
                await stack.enter_async_context(place)
            except TimeoutError:
                metrics.record_refused_request("concurrent_calls")
                raise TooManyRequests(
                    f"This tenant has {most} calls under way at this gateway, and may not have more. Try again when "
                    "one of them has ended.",
                    code=ErrorCode.TOO_MANY_CONCURRENT_CALLS,
                ) from None
            yield

    @asynccontextmanager
    async def at_work(self, caller: Caller) -> AsyncIterator[Slot]:
        """Work on a call of this tenant inside, when it has its turn. Raises Unavailable where that does not come."""
        async with AsyncExitStack() as stack:
            try:
                with metrics.waiting_call():
                    turn = held_slot(self._at_work, caller.tenant_id, wait_seconds=self._wait_seconds)
                    slot = await stack.enter_async_context(turn)
            except TimeoutError:
                metrics.record_refused_request("calls_at_work")
                raise Unavailable(
                    f"This call's turn did not come within {self._wait_seconds:g} seconds. Try again in a moment, with "
                    "fewer calls at once.",
                    code=ErrorCode.BUSY,
                ) from None
            if self._presence is not None and not self._at_work.waiting(caller.tenant_id):
                self._presence.note(caller.tenant_id)
            yield slot


def limits_of(caller: Caller) -> list[RateLimit]:
    """How often a caller may ask: the narrower limit, its key's, first."""
    tenant = f"recollect:rate:{{{caller.tenant_id}}}"
    limits = (
        ("key", f"{tenant}:{caller.subject}", caller.rates.key_requests_per_minute),
        ("tenant", tenant, caller.rates.requests_per_minute),
    )
    return [RateLimit(policy, subject, quota) for policy, subject, quota in limits if quota is not None]


def by_address(what: str, per_minute: Callable[[Settings], int]) -> Guard:
    """A guard of a route that needs no credential: so many requests of one client address in a minute.

    `what` names what is counted together; `per_minute` is found in the settings.
    """

    async def within_rate(connection: AnyConnection, _: BaseRouteHandler) -> None:
        state = connection.app.state
        limits: AddressLimits = state.address_limits
        site = site_of_client(connection)
        await take(state.limiter, connection.scope, limits.of(what, site, per_minute(state.settings)))

    return within_rate


async def take_for_account(request: AnyConnection, email: str, *, browser: str | None = None) -> None:
    """Count one try to sign in to an account, wherever it comes from and whether or not it is there.

    `browser`: one in which somebody signed in to it before, whose tries are counted apart: nobody else takes them.
    Raises RateLimited.
    """
    counted = ("account", email) if browser is None else ("account-in-browser", f"{browser} {email}")
    await _take_for_account(request, *counted)


async def take_for_own_account(request: AnyConnection, person_id: UUID) -> None:
    """Count one password that who is signed in tells; apart from tries to sign in, which anybody makes.

    Raises RateLimited.
    """
    await _take_for_account(request, "own-account", str(person_id))


async def _take_for_account(request: AnyConnection, what: str, whose: str) -> None:
    state = request.app.state
    limits: AddressLimits = state.address_limits
    limit = limits.of(what, whose, state.settings.sign_ins_per_minute)
    await take(state.limiter, request.scope, replace(limit, policy="account"))


async def take_for_reset(request: AnyConnection, email: str) -> None:
    """Count one asking for a link by mail to this address, whether or not there is an account. Raises RateLimited."""
    state = request.app.state
    limits: AddressLimits = state.address_limits
    limit = replace(limits.of("reset-of", email, RESETS_PER_HOUR), policy="account", seconds=3600)
    await take(state.limiter, request.scope, limit)


async def take(limiter: RateLimiter, scope: Scope, *limits: RateLimit) -> None:
    """Count a request for these limits, and have its answer tell what is left; raises RateLimited."""
    try:
        _note(scope, (await limiter.take(*limits)).standings)
    except RateLimited as reached:
        _note(scope, reached.standings)
        raise


async def tell_limits(message: Message, scope: Scope) -> None:
    """Add to an answer, whatever it is, what is left of the limits that held for its request."""
    standings = scope["state"].get(_STANDINGS)
    if not standings or message["type"] != "http.response.start":
        return
    headers = MutableScopeHeaders.from_message(message)
    headers["RateLimit-Policy"] = ", ".join(
        f'"{each.limit.policy}";q={each.limit.quota};w={each.limit.seconds}' for each in standings
    )
    headers["RateLimit"] = ", ".join(
        f'"{each.limit.policy}";r={each.remaining};t={each.reset_seconds}' for each in standings
    )


def _credential(scope: Scope) -> bytes:
    """What tells a credential from others, and is of no use as one: a key, or a session as a tenant's member."""
    headers = [b"%s:%s" % (name, value) for name, value in scope["headers"] if name in _CREDENTIALS]
    return hashlib.sha256(b"\n".join(headers)).digest()


def _note(scope: Scope, standings: Sequence[Standing]) -> None:
    scope["state"][_STANDINGS] = standings  # The one part of a scope that its copies share.
