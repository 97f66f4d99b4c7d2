"""/join/{secret}: the page of an invitation, by which one becomes a member."""

from litestar import Controller, Response, get, post
from litestar.response import Redirect

from recollect.accounts.members import service as members
from recollect.accounts.members.model import OpenInvitation
from recollect.accounts.people import service as people
from recollect.accounts.people import sessions
from recollect.accounts.people.model import Confinement, PersonSession
from recollect.errors import InvalidInput
from recollect_gateway.callers.browser_sessions import signed_in
from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.web.known_browsers import known_cookie
from recollect_gateway.web.pages import CONSOLE, page
from recollect_gateway.web.providers import offered_to
from recollect_gateway.web.sessions import browser_of, session_cookie, to_sign_in
from recollect_http.client_addresses import site_of_client
from recollect_http.requests import AnyRequest
from recollect_http.web.forms import field, read_form
from recollect_http.web.rendering import go_to


class JoinController(Controller):
    """The page of an invitation's link."""

    path = "/join/{secret:str}"
    include_in_schema = False
    guards = (by_address("join", lambda settings: settings.sign_ins_per_minute),)

    @get("/")
    async def show(self, request: AnyRequest) -> Response[str] | Redirect:
        """Join, sign in to join, or make an account to join."""
        invitation = await _invitation(request)
        session = await _session(request)
        # A link that was shown to others must not show them who has an account: all see one page.
        may_know = invitation.proves_address
        if session is None and may_know and await people.is_known(request.app.state.databases.home, invitation.email):
            return to_sign_in(request)
        return await _page(request, invitation, session)

    @post("/")
    async def join(self, request: AnyRequest) -> Response[str] | Redirect:
        """Become a member: as the signed-in person, or as a new person with a name and a password."""
        form = await read_form(request)
        invitation, session, state = await _invitation(request), await _session(request), request.app.state
        if session is not None:
            await members.join(state.databases, invitation, session, address=site_of_client(request))
            return go_to(f"{CONSOLE}/{invitation.tenant}")
        try:
            joined = await members.join_with_new_account(
                state.databases,
                invitation,
                field(form, "name"),
                field(form, "password"),
                breached=state.breached,
                address=site_of_client(request),
            )
        except InvalidInput as error:
            return await _page(request, invitation, None, status=400, name=field(form, "name"), fault=error.message)
        answer, confinement = go_to(f"{CONSOLE}/{invitation.tenant}"), Confinement.of_account(joined.confined_to)
        issued = await sessions.begin_session(
            state.databases, joined.person_id, browser_of(request), pepper=state.pepper, confinement=confinement
        )
        answer.set_cookie(session_cookie(request, issued))
        answer.set_cookie(known_cookie(request, invitation.email))
        return answer


async def _session(request: AnyRequest) -> PersonSession | None:
    """The browser's session; None where it is one of an account of a single tenant, which can join no other."""
    session = await signed_in(request)
    return None if session is not None and session.account_tenant is not None else session


async def _invitation(request: AnyRequest) -> OpenInvitation:
    state = request.app.state
    return await members.open_invitation(state.databases, request.path_params["secret"], pepper=state.pepper)


async def _page(
    request: AnyRequest,
    invitation: OpenInvitation,
    session: PersonSession | None,
    *,
    status: int = 200,
    name: str = "",
    fault: str = "",
) -> Response[str]:
    return page(
        request,
        "join.html",
        status=status,
        invitation=invitation,
        secret=request.path_params["secret"],
        path=request.url.path,
        providers=await offered_to(request, invitation.tenant),
        me=session,
        name=name,
        fault=fault,
    )
