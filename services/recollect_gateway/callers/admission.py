"""Admission: a caller's request is counted against its rate limits, and its call gets a permit and a slot.

Both transports admit each request once: when the caller is known, and before the body is read.
"""

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from uuid import UUID

from cachetools import LRUCache
from litestar.types import Scope

from recollect.caller import Caller
from recollect.errors import ErrorCode, TooManyRequests, Unavailable
from recollect.fairness.fair_queue import FairQueue
from recollect.fairness.presence import PresenceReporter
from recollect.fairness.shares import Shares
from recollect.fairness.slots import Slot, acquire_slot
from recollect.settings import Settings
from recollect.telemetry import metrics
from recollect.valkey.rate_limits.limiter import RateLimiter
from recollect.valkey.rate_limits.model import RateLimit, RateLimited
from recollect_gateway.callers.browser_sessions import TENANT_HEADER
from recollect_gateway.callers.rate_limits import limits_of, note_limit_states, take

CALL_WAIT_SECONDS = 1.0
"""How long a call waits for a permit if its tenant has as many concurrent calls as its plan allows."""

REMEMBERED_CREDENTIALS = 10_000
"""How many credentials a gateway remembers of each kind: those that a rate limit refused, and those admitted."""

_CREDENTIALS = frozenset({b"authorization", b"cookie", TENANT_HEADER.encode()})


class Admission:
    """Counts the requests of callers, and gives their calls permits and slots."""

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
            note_limit_states(scope, error.states)
            raise

    @contextmanager
    def expect_caller(self, scope: Scope) -> Iterator[None]:
        """Let calls of other tenants give way while the caller is looked up and admitted inside the block.

        The tenant is taken from the credential's last admission, and decides only which calls give way.
        """
        tenant_id = self._tenants.get(_credential(scope))
        if tenant_id is None:
            yield
            return
        with self._slots.expecting(tenant_id):
            yield

    @asynccontextmanager
    async def admit(self, scope: Scope, caller: Caller) -> AsyncIterator[None]:
        """Hold a permit while a call is served inside the block, to the end of its answer. Raises TooManyRequests."""
        self._tenants[_credential(scope)] = caller.tenant_id
        limits = limits_of(caller)
        try:
            await take(self._limiter, scope, *limits)
        except RateLimited:
            self._limits[_credential(scope)] = limits
            raise
        limit = caller.rates.concurrent_calls or self._calls.limit
        key = caller.tenant_id, limit  # After a change of the plan, new calls have new permits.
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
        """Wait for a slot to work on a call of this tenant. Raises Unavailable if it takes too long."""
        async with AsyncExitStack() as stack:
            try:
                with metrics.waiting_call():
                    waiting = acquire_slot(self._slots, caller.tenant_id, wait_seconds=self._wait_seconds)
                    slot = await stack.enter_async_context(waiting)
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


def _credential(scope: Scope) -> bytes:
    """A hash that identifies a credential: a key, or a session and its tenant. It cannot be used as a credential."""
    headers = [b"%s:%s" % (name, value) for name, value in scope["headers"] if name in _CREDENTIALS]
    return hashlib.sha256(b"\n".join(headers)).digest()
