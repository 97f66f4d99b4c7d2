"""People who are signed in: the session of a browser, by its cookie, and the person as a caller of a tenant."""

from typing import Any

from litestar.connection import ASGIConnection

from recollect.accounts.members.model import subject_of
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Membership, PersonSession
from recollect.caller import ROLE_SCOPES, Caller
from recollect_http.web.cookies import cookie_name

AnyConnection = ASGIConnection[Any, Any, Any, Any]

TENANT_HEADER = "x-recollect-tenant"
"""Names the tenant as whose member a browser calls. Forms cannot send it; pages of other sites only if CORS allows."""

COOKIE = "session"


async def signed_in(request: AnyConnection) -> PersonSession | None:
    """The browser's session, or None. Raises TooManyRequests where too many secrets from the address did not hold."""
    secret = request.cookies.get(cookie_name(request, COOKIE))
    if not secret:
        return None
    session: PersonSession | None = await request.app.state.authenticator.session(request, secret)
    return session


async def member_caller(request: AnyConnection, tenant: str) -> Caller | None:
    """The signed-in person as the Caller of that tenant; None where they are no member, whatever the reason."""
    session = await signed_in(request)
    if session is None:
        return None
    membership = await active_membership(request, session, tenant)
    return None if membership is None else caller_of(session, membership)


async def active_membership(request: AnyConnection, session: PersonSession, tenant: str) -> Membership | None:
    """The person's membership of that tenant; None where they are no member, or the tenant is suspended."""
    databases = request.app.state.databases
    membership = await people.find_membership(databases, session.person_id, tenant, within=session.confined_to)
    return membership if membership is not None and membership.tenant_status == "active" else None


def caller_of(session: PersonSession, membership: Membership) -> Caller:
    """The signed-in person as the Caller of a tenant."""
    return Caller(
        membership.tenant_id,
        membership.tenant,
        subject_of(session.person_id),
        ROLE_SCOPES[membership.role],
        role=membership.role,
        plan=membership.plan,
        rates=membership.rates,
    )
