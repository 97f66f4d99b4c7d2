"""/sign-in, /sign-out and /account: who one is here."""

from typing import Any

from litestar import Controller, Request, Response, get, post
from litestar.params import FromQuery
from litestar.response import Redirect

from recollect.accounts.people import service as people
from recollect.errors import InvalidInput, Unauthenticated
from recollect_gateway.admission import by_address, take_for_account
from recollect_gateway.web.account import account_page
from recollect_gateway.web.forms import field, read_form
from recollect_gateway.web.pages import go_to, next_place, page
from recollect_gateway.web.sessions import browser_of, no_session_cookie, session_cookie, signed_in, to_sign_in

AnyRequest = Request[Any, Any, Any]


class SignInController(Controller):
    """Sign in by address and password, and out."""

    path = "/"
    include_in_schema = False

    @get("/sign-in")
    async def show(self, request: AnyRequest, next: FromQuery[str | None] = None) -> Response[str] | Redirect:
        """The form; who is signed in goes on."""
        if await signed_in(request) is not None:
            return go_to(next_place(next))
        return page(request, "sign_in.html", next=next_place(next), email="", fault="")

    @post("/sign-in", guards=[by_address("sign-in", lambda settings: settings.sign_ins_per_minute)])
    async def sign_in(self, request: AnyRequest) -> Response[str] | Redirect:
        """Begin a session and go on, or show the form again."""
        form = await read_form(request)
        place, email = next_place(field(form, "next")), field(form, "email")
        state = request.app.state
        await take_for_account(request, email.strip().lower())
        try:
            issued = await people.sign_in(
                state.db, email, field(form, "password"), browser_of(request), pepper=state.pepper
            )
        except Unauthenticated as error:
            return page(request, "sign_in.html", status=401, next=place, email=email, fault=error.message)
        answer = go_to(place)
        answer.set_cookie(session_cookie(request, issued))
        return answer

    @post("/sign-out")
    async def sign_out(self, request: AnyRequest) -> Redirect:
        """End the session of this browser."""
        await read_form(request)
        if (session := await signed_in(request)) is not None:
            await people.end_session(request.app.state.db, session.person_id, session.id)
        answer = go_to("/sign-in")
        answer.set_cookie(no_session_cookie(request))
        return answer


class AccountController(Controller):
    """One's own account: organisations, sessions, password."""

    path = "/account"
    include_in_schema = False

    @get("/")
    async def show(self, request: AnyRequest) -> Response[str] | Redirect:
        """The account."""
        session = await signed_in(request)
        return to_sign_in(request) if session is None else await account_page(request, session)

    @post("/password")
    async def change_password(self, request: AnyRequest) -> Response[str] | Redirect:
        """Take another password; all other sessions end."""
        form = await read_form(request)
        session = await signed_in(request)
        if session is None:
            return go_to("/sign-in")
        await take_for_account(request, session.email)
        try:
            await people.change_password(
                request.app.state.db,
                session,
                field(form, "old_password"),
                field(form, "password"),
                breached=request.app.state.breached,
            )
        except InvalidInput as error:
            return await account_page(request, session, status=400, fault=error.message)
        return await account_page(
            request, session, done="Your password is changed, and your other sessions have ended."
        )

    @post("/sessions/{session_id:uuid}/end")
    async def end_session(self, request: AnyRequest) -> Redirect:
        """End one session."""
        await read_form(request)
        session = await signed_in(request)
        if session is not None:
            await people.end_session(request.app.state.db, session.person_id, request.path_params["session_id"])
        return go_to("/account")
