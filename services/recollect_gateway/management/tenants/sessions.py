"""/v1/sessions: the sessions of the signed-in person.

A session belongs to a person and to no tenant: admins do not see the sessions of their members, who may be members
elsewhere. To lock somebody out of a tenant, an admin removes the member, in force with the next request.
"""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from litestar import Controller
from litestar.di import NamedDependency
from litestar.params import PathParameter
from msgspec import Meta, Struct

from recollect.accounts.people import sessions
from recollect.accounts.people.model import ListedSession, PersonSession
from recollect.cells.databases import Databases
from recollect.errors import ErrorCode, NotFound
from recollect_gateway.callers.browser_sessions import signed_in
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest
from recollect_gateway.requests.idempotency import NEEDS_NO_KEY
from recollect_http.client_addresses import site_of_client
from recollect_http.openapi.routes import delete, get
from recollect_http.pages import IdCursor, Limit, Page, page_of
from recollect_http.problems import RESPONSES

SessionInPath = Annotated[UUID, PathParameter(description="Id of the session")]


class SessionBody(Struct, frozen=True):
    """A session: one sign-in of a person in a browser."""

    id: Annotated[str, Meta(description="Id of the session, a UUID")]
    current: Annotated[bool, Meta(description="Whether this is the session of the request")]
    created_at: Annotated[datetime, Meta(description="Time of the sign-in")]
    last_used_at: Annotated[datetime, Meta(description="Time of the last use")]
    expires_at: Annotated[datetime, Meta(description="Time at which the session ends, however much it is used")]
    revoked_at: Annotated[datetime | None, Meta(description="Time at which the session was ended; null: it was not")]
    user_agent: Annotated[str, Meta(description="`User-Agent` of the browser at the sign-in")]
    address: Annotated[str, Meta(description="IP address of the browser at the sign-in, of IPv6 its /64 network")]


class SessionController(Controller):
    """List and end one's own sessions."""

    path = "/sessions"
    tags = ("sessions",)
    opt = BY_SCOPE

    @get("/", response_description="A page of the person's valid sessions.", summary="List your sessions")
    async def list_sessions(
        self,
        request: CallerRequest,
        databases: NamedDependency[Databases],
        cursor: IdCursor = None,
        limit: Limit = 50,
    ) -> Page[SessionBody]:
        """List the caller's valid sessions, newest first, up to the 100 used most recently. A key has no sessions."""
        own = await _own(request)
        found = await sessions.list_sessions(databases, own.person_id, within=own.confined_to) if own else []
        newest = sorted(found, key=lambda session: session.id, reverse=True)
        rest = [session for session in newest if cursor is None or session.id < cursor]
        return page_of(rest, limit, lambda session: _body(session, own), lambda session: str(session.id))

    @delete(
        "/{session_id:uuid}",
        responses=RESPONSES,
        response_description="The session, which is ended now.",
        summary="End one of your sessions",
        opt=BY_SCOPE | NEEDS_NO_KEY,
        status_code=200,
    )
    async def end_session(
        self, request: CallerRequest, databases: NamedDependency[Databases], session_id: SessionInPath
    ) -> SessionBody:
        """End one of the caller's sessions, which signs out that browser. Ending it again changes nothing.

        For a session of somebody else, the response is 404 `session_not_found`.
        """
        own = await _own(request)
        if own is None:
            raise NotFound("There is no such session.", code=ErrorCode.SESSION_NOT_FOUND)
        ended = await sessions.end_session(
            databases, own.person_id, session_id, within=own.confined_to, address=site_of_client(request)
        )
        return _body(ended, own)


async def _own(request: CallerRequest) -> PersonSession | None:
    """The session of the request; None where a key called, whatever cookie came with it."""
    return None if request.user.role is None else await signed_in(request)


def _body(session: ListedSession, own: PersonSession | None) -> SessionBody:
    return SessionBody(
        str(session.id),
        own is not None and session.id == own.id,
        session.created_at,
        session.last_used_at,
        session.expires_at,
        session.revoked_at,
        session.user_agent,
        session.address,
    )
