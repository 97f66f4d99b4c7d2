"""Rate limits: how many requests a key, its tenant or an address may send in a minute.

The limits are chosen here, those of a key and a tenant by the tenant's plan. They are counted by
`recollect.valkey.rate_limits`, for all gateways together. Every answer says what is left of the limits in the fields
`RateLimit` and `RateLimit-Policy`, as of draft-ietf-httpapi-ratelimit-headers-10: lists of strings with parameters
(RFC 9651).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from litestar.connection import ASGIConnection
from litestar.datastructures import MutableScopeHeaders
from litestar.handlers import BaseRouteHandler
from litestar.types import Message, Scope

from recollect.caller import Caller
from recollect.settings import Settings
from recollect.valkey.rate_limits.limiter import RateLimiter
from recollect.valkey.rate_limits.model import LimitState, RateLimit, RateLimited
from recollect_http.address_limits import AddressLimits
from recollect_http.client_addresses import site_of_client

_STATES = "recollect.limit_states"

AnyConnection = ASGIConnection[Any, Any, Any, Any]
Guard = Callable[[AnyConnection, BaseRouteHandler], Awaitable[None]]


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


async def take(limiter: RateLimiter, scope: Scope, *limits: RateLimit) -> None:
    """Count a request against these limits, and have its answer say what is left of them; raises RateLimited."""
    try:
        note_limit_states(scope, (await limiter.take(*limits)).states)
    except RateLimited as error:
        note_limit_states(scope, error.states)
        raise


async def add_limit_headers(message: Message, scope: Scope) -> None:
    """A hook before an answer is sent: add what is left of the limits against which its request was counted."""
    states = scope["state"].get(_STATES)
    if not states or message["type"] != "http.response.start":
        return
    headers = MutableScopeHeaders.from_message(message)
    headers["RateLimit-Policy"] = ", ".join(
        f'"{state.limit.policy}";q={state.limit.quota};w={state.limit.seconds}' for state in states
    )
    headers["RateLimit"] = ", ".join(
        f'"{state.limit.policy}";r={state.remaining};t={state.reset_seconds}' for state in states
    )


def note_limit_states(scope: Scope, states: Sequence[LimitState]) -> None:
    """Keep what is left of a request's limits, for `add_limit_headers`."""
    scope["state"][_STATES] = states  # Copies of a scope share its `state` and nothing else.
