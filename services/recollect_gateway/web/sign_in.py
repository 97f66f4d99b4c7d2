"""/sign-in, /sign-out and /account: signing in and out, and one's own account."""

import structlog
from litestar import Controller, Response, get, post
from litestar.background_tasks import BackgroundTask
from litestar.params import FromQuery
from litestar.response import Redirect

from recollect.accounts.people import deletion, notices, sessions
from recollect.accounts.people import service as people
from recollect.accounts.people.model import MAX_EMAIL, Browser
from recollect.cells.databases import Databases
from recollect.errors import Conflict, InvalidInput, RecollectError, Unauthenticated
from recollect_gateway.callers.browser_sessions import signed_in
from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.callers.sign_in_attempts import take_for_account, take_for_own_account
from recollect_gateway.web.account import account_page
from recollect_gateway.web.known_browsers import known_browser, known_cookie
from recollect_gateway.web.notices import send_notice
from recollect_gateway.web.pages import page, passkey_context, safe_next_url
from recollect_gateway.web.providers import find_organization, offered_to
from recollect_gateway.web.sessions import browser_of, no_session_cookie, session_cookie, to_sign_in
from recollect_http.client_addresses import site_of_client
from recollect_http.requests import AnyRequest
from recollect_http.web.forms import field, read_form
from recollect_http.web.rendering import go_to

DELETED = "You are signed out everywhere. Your address, your name and your ways to sign in have been deleted."

log = structlog.get_logger(__name__)


class SignInController(Controller):
    """Signs people in by email address and password, and out."""

    path = "/"
    include_in_schema = False

    @get("/sign-in", guards=[by_address("sign-in-page", lambda settings: settings.public_requests_per_minute)])
    async def show(
        self,
        request: AnyRequest,
        next: FromQuery[str | None] = None,
        organization: FromQuery[str | None] = None,
    ) -> Response[str] | Redirect:
        """The form, with the identity providers of the organisation; a signed-in person goes on at once."""
        if await signed_in(request) is not None:
            return go_to(safe_next_url(next))
        return await sign_in_page(request, safe_next_url(next), organization=organization)

    @post("/sign-in", guards=[by_address("sign-in", lambda settings: settings.sign_ins_per_minute)])
    async def sign_in(self, request: AnyRequest) -> Response[str] | Redirect:
        """Begin a session and go on, or show the form again."""
        form = await read_form(request)
        next_url, email = safe_next_url(field(form, "next")), field(form, "email")
        state = request.app.state
        await take_for_account(request, email.strip().lower(), browser=known_browser(request, email))
        try:
            issued = await people.sign_in(
                state.databases,
                email,
                field(form, "password"),
                browser_of(request),
                pepper=state.pepper,
                tenant=await find_organization(request, next_url, field(form, "organization") or None),
            )
        except Unauthenticated as error:
            refusal = await sign_in_page(request, next_url, status=401, email=email, fault=error.message)
            refusal.background = BackgroundTask(_note_refused, state.databases, email, browser_of(request))
            return refusal
        answer = go_to(next_url)
        answer.set_cookie(session_cookie(request, issued))
        answer.set_cookie(known_cookie(request, email))
        return answer

    @post("/sign-out")
    async def sign_out(self, request: AnyRequest) -> Redirect:
        """End the session of this browser."""
        await read_form(request)
        if (session := await signed_in(request)) is not None:
            await sessions.end_session(
                request.app.state.databases,
                session.person_id,
                session.id,
                within=session.confined_to,
                address=site_of_client(request),
            )
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
        """Change the password; all other sessions end."""
        form = await read_form(request)
        session = await signed_in(request)
        if session is None:
            return go_to("/sign-in")
        await take_for_own_account(request, session.person_id)
        try:
            await people.change_password(
                request.app.state.databases,
                session,
                field(form, "old_password"),
                field(form, "password"),
                address=site_of_client(request),
                breached=request.app.state.breached,
            )
        except InvalidInput as error:
            return await account_page(request, session, status=400, fault=error.message)
        send_notice(
            request, lambda mailer: notices.notify_of_password(mailer, session.email, address=site_of_client(request))
        )
        return await account_page(
            request, session, done="Your password was changed, and your other sessions have ended."
        )

    @post("/delete", status_code=200)
    async def delete(self, request: AnyRequest) -> Response[str] | Redirect:
        """Delete one's account, once one is a member nowhere. A person with a password must enter it."""
        form, session = await read_form(request), await signed_in(request)
        if session is None:
            return go_to("/sign-in")
        await take_for_own_account(request, session.person_id)
        try:
            await deletion.delete_own_account(request.app.state.databases, session, field(form, "password"))
        except InvalidInput as error:
            return await account_page(request, session, status=400, fault=error.message)
        except Conflict as error:
            return await account_page(request, session, status=409, fault=error.message)
        send_notice(
            request, lambda mailer: notices.notify_of_deletion(mailer, session.email, address=site_of_client(request))
        )
        answer = page(request, "message.html", title="Your account is deleted", text=DELETED)
        answer.set_cookie(no_session_cookie(request))
        return answer

    @post("/sessions/{session_id:uuid}/end")
    async def end_session(self, request: AnyRequest) -> Redirect:
        """End one session."""
        await read_form(request)
        session = await signed_in(request)
        if session is not None:
            await sessions.end_session(
                request.app.state.databases,
                session.person_id,
                request.path_params["session_id"],
                within=session.confined_to,
                address=site_of_client(request),
            )
        return go_to("/account")


async def sign_in_page(
    request: AnyRequest,
    next_url: str,
    *,
    organization: str | None = None,
    status: int = 200,
    email: str = "",
    fault: str = "",
) -> Response[str]:
    """The page on which to sign in, with every way that there is."""
    found = await find_organization(request, next_url, organization)
    return page(
        request,
        "sign_in.html",
        status=status,
        next=next_url,
        email=email,
        fault=fault,
        organization=(organization or found)[:MAX_EMAIL],
        **passkey_context(request),
        providers=await offered_to(request, found),
    )


async def _note_refused(databases: Databases, email: str, browser: Browser) -> None:
    """Record a refused sign-in. The page is sent already, so a failure is only logged."""
    try:
        await people.note_refused_sign_in(databases, email, browser)
    except RecollectError as error:
        log.warning("refused sign-in not recorded", reason=str(error))
