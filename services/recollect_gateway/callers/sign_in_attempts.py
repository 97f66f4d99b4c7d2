"""Attempts to sign in: how many a minute an account allows, right or wrong, from all addresses together."""

from dataclasses import replace
from uuid import UUID

from recollect_gateway.callers.rate_limits import AnyConnection, take
from recollect_http.address_limits import AddressLimits

RESETS_PER_HOUR = 5
"""Links for a new password that are sent to one address in an hour, so that nobody can fill a stranger's mailbox."""


async def take_for_account(request: AnyConnection, email: str, *, browser: str | None = None) -> None:
    """Count one attempt to sign in to an account, from whatever address and whether or not the account exists.

    `browser`: one in which the person signed in to the account before. Its attempts are counted separately, so that
    nobody else uses them up. Raises RateLimited.
    """
    if browser is None:
        await _take_for_account(request, "account", email)
    else:
        await _take_for_account(request, "account-in-browser", f"{browser} {email}")


async def take_for_own_account(request: AnyConnection, person_id: UUID) -> None:
    """Count one password that a signed-in person enters, separately from attempts to sign in, which anybody may make.

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
