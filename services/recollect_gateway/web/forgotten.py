"""/forgot and /reset/{secret}: a new password for people who forgot theirs."""

from typing import Any

from litestar import Controller, Request, Response, get, post
from litestar.datastructures import State
from litestar.response import Redirect

from recollect.accounts.people import notices, resets
from recollect.accounts.people.resets import OpenReset
from recollect.errors import InvalidInput
from recollect.platform.mail import Mailer, MailFailed
from recollect_gateway.addresses import site_of_client
from recollect_gateway.admission import by_address, take_for_reset
from recollect_gateway.web.forms import field, read_form
from recollect_gateway.web.known_browsers import known_cookie
from recollect_gateway.web.notices import send_notice
from recollect_gateway.web.pages import go_to, page
from recollect_gateway.web.sessions import no_session_cookie

AnyRequest = Request[Any, Any, Any]

ON_ITS_WAY = (
    "If there is an account with this address and it has a password, we have sent a link to the address. The link is "
    "valid for an hour. If no mail arrives, check the address and your spam folder."
)


class ForgottenController(Controller):
    """Sends links for a new password."""

    path = "/forgot"
    include_in_schema = False

    @get("/")
    async def show(self, request: AnyRequest) -> Response[str]:
        """The form, or, where no mail is sent, whom to ask."""
        return page(request, "forgot.html", mails=request.app.state.mailer is not None)

    @post("/", status_code=200, guards=[by_address("forgot", lambda settings: settings.sign_ins_per_minute)])
    async def ask(self, request: AnyRequest) -> Response[str]:
        """Say that a link is sent if there is an account. The account is looked up beside the answer."""
        email, state = field(await read_form(request), "email").strip().lower(), request.app.state
        if state.mailer is None:
            return page(request, "forgot.html", mails=False)
        await take_for_reset(request, email)
        state.errands.begin("password reset", lambda: _send_link(state, state.mailer, email))
        return page(request, "message.html", title="Check your mail", text=ON_ITS_WAY)


class ResetController(Controller):
    """The page of such a link."""

    path = "/reset/{secret:str}"
    include_in_schema = False
    guards = (by_address("reset", lambda settings: settings.sign_ins_per_minute),)

    @get("/")
    async def show(self, request: AnyRequest) -> Response[str]:
        """The form for a new password; opening it does not use the link up, since programs open links in mail."""
        return _form(request, await _reset(request))

    @post("/")
    async def take(self, request: AnyRequest) -> Response[str] | Redirect:
        """Set the new password; all sessions end."""
        form, reset, state = await read_form(request), await _reset(request), request.app.state
        try:
            await resets.reset_password(
                state.db,
                reset,
                field(form, "password"),
                breached=state.breached,
                address=site_of_client(request),
            )
        except InvalidInput as error:
            return _form(request, reset, status=400, fault=error.message)
        send_notice(
            request, lambda mailer: notices.tell_of_password(mailer, reset.email, address=site_of_client(request))
        )
        answer = go_to("/sign-in")
        answer.set_cookie(no_session_cookie(request))
        answer.set_cookie(known_cookie(request, reset.email))
        return answer


async def _send_link(state: State, mailer: Mailer, email: str) -> None:
    """Send a link to the address, if it has an account with a password; a malformed address has none."""
    try:
        account = await resets.find_account(state.db, email)
    except InvalidInput:
        return
    if account is None or account.password_hash is None:
        return
    secret = await resets.begin_reset(state.db, account.id, pepper=state.pepper)
    try:
        await mailer.send(resets.reset_letter(account.email, f"{state.settings.base_url}/reset/{secret}"))
    except MailFailed:
        return  # The mailer has logged it.


async def _reset(request: AnyRequest) -> OpenReset:
    state = request.app.state
    return await resets.open_reset(state.db, request.path_params["secret"], pepper=state.pepper)


def _form(request: AnyRequest, reset: OpenReset, *, status: int = 200, fault: str = "") -> Response[str]:
    return page(request, "reset.html", status=status, email=reset.email, fault=fault)
