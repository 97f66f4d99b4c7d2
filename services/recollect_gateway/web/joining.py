"""/join/{secret}: the page of an invitation, by which one becomes a member."""

from typing import Any

from litestar import Controller, Request, Response, get, post
from litestar.response import Redirect

from recollect.accounts.members import service as members
from recollect.accounts.members.model import OpenInvitation
from recollect.accounts.people import service as people
from recollect.accounts.people.model import PersonSession
from recollect.errors import InvalidInput
from recollect_gateway.addresses import site_of_client
from recollect_gateway.admission import by_address
from recollect_gateway.web.forms import field, read_form
from recollect_gateway.web.known_browsers import known_cookie
from recollect_gateway.web.pages import go_to, page
from recollect_gateway.web.providers import offered_to
from recollect_gateway.web.sessions import browser_of, session_cookie, signed_in, to_sign_in

AnyRequest = Request[Any, Any, Any]


class JoinController(Controller):
    """The page of an invitation's link."""

    path = "/join/{secret:str}"
    include_in_schema = False
    guards = (by_address("join", lambda settings: settings.sign_ins_per_minute),)

    @get("/")
    async def show(self, request: AnyRequest) -> Response[str] | Redirect:
        """Join, sign in to join, or make an account to join."""
        invitation = await _invitation(request)
        session = await signed_in(request)
        if session is None and await people.is_known(request.app.state.db, invitation.email):
            return to_sign_in(request)
        return await _page(request, invitation, session)

    @post("/")
    async def join(self, request: AnyRequest) -> Response[str] | Redirect:
        """Become a member: as the signed-in person, or as a new person with a name and a password."""
        form = await read_form(request)
        invitation, session, state = await _invitation(request), await signed_in(request), request.app.state
        if session is not None:
            await members.join(state.db, invitation, session, address=site_of_client(request))
            return go_to("/account")
        try:
            person = await people.register(
                state.db,
                invitation.email,
                field(form, "name"),
                field(form, "password"),
                breached=state.breached,
            )
        except InvalidInput as error:
            return await _page(request, invitation, None, status=400, name=field(form, "name"), fault=error.message)
        await members.join(state.db, invitation, person, address=site_of_client(request))
        answer = go_to("/account")
        issued = await people.begin_session(state.db, person.id, browser_of(request), pepper=state.pepper)
        answer.set_cookie(session_cookie(request, issued))
        answer.set_cookie(known_cookie(request, invitation.email))
        return answer


async def _invitation(request: AnyRequest) -> OpenInvitation:
    state = request.app.state
    return await members.open_invitation(state.db, request.path_params["secret"], pepper=state.pepper)


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
        providers=await offered_to(request, invitation.tenant),
        me=session,
        name=name,
        fault=fault,
    )
