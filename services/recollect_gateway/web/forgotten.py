"""/forgot and /reset/{secret}: a new password for people who forgot theirs."""

from litestar import Controller, Response, get, post
from litestar.datastructures import State
from litestar.response import Redirect

from recollect.accounts.identity_providers import own
from recollect.accounts.passkeys import service as passkeys
from recollect.accounts.people import notices, resets, sessions
from recollect.accounts.people.resets import OpenReset
from recollect.errors import InvalidInput
from recollect.outbound.mail import Mailer, MailFailed
from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.callers.sign_in_attempts import take_for_reset
from recollect_gateway.web.known_browsers import known_cookie
from recollect_gateway.web.local_owner import local_owner
from recollect_gateway.web.notices import send_notice
from recollect_gateway.web.pages import page
from recollect_gateway.web.sessions import no_session_cookie
from recollect_http.client_addresses import site_of_client
from recollect_http.requests import AnyRequest
from recollect_http.web.forms import field, read_form
from recollect_http.web.rendering import go_to

RESET_SENT = (
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
        mails, local = request.app.state.mailer is not None, local_owner(request) is not None
        return page(request, "forgot.html", mails=mails, local=local)

    @post("/", status_code=200, guards=[by_address("forgot", lambda settings: settings.sign_ins_per_minute)])
    async def ask(self, request: AnyRequest) -> Response[str]:
        """Say that a link is sent if there is an account. The account is looked up in the background."""
        email, state = field(await read_form(request), "email").strip().lower(), request.app.state
        if state.mailer is None:
            return page(request, "forgot.html", mails=False)
        await take_for_reset(request, email)
        state.background_tasks.begin("password reset", lambda: _send_link(state, state.mailer, email))
        return page(request, "message.html", title="Check your mail", text=RESET_SENT)


class ResetController(Controller):
    """The page of such a link."""

    path = "/reset/{secret:str}"
    include_in_schema = False
    guards = (by_address("reset", lambda settings: settings.sign_ins_per_minute),)

    @get("/")
    async def show(self, request: AnyRequest) -> Response[str]:
        """The form for a new password; opening it does not use the link up, since programs open links in mail."""
        return await _form(request, await _reset(request))

    @post("/")
    async def take(self, request: AnyRequest) -> Response[str] | Redirect:
        """Set the new password; sessions, passkeys and connections to identity providers end."""
        form, reset, state = await read_form(request), await _reset(request), request.app.state
        try:
            await resets.reset_password(
                state.databases,
                reset,
                field(form, "password"),
                breached=state.breached,
                address=site_of_client(request),
            )
        except InvalidInput as error:
            return await _form(request, reset, status=400, fault=error.message)
        send_notice(
            request, lambda mailer: notices.notify_of_reset(mailer, reset.email, address=site_of_client(request))
        )
        answer = go_to("/sign-in")
        answer.set_cookie(no_session_cookie(request))
        answer.set_cookie(known_cookie(request, reset.email))
        return answer


async def _send_link(state: State, mailer: Mailer, email: str) -> None:
    """Send a link for each account of the address that has a password; a malformed address has none."""
    try:
        accounts = [account for account in await resets.find_accounts(state.databases, email) if account.password_hash]
    except InvalidInput:
        return
    if not accounts:
        return
    links = {}
    for account in accounts:
        secret = await resets.begin_reset(state.databases, account.id, pepper=state.pepper, within=account.confined_to)
        links[account.tenant] = f"{state.settings.base_url}/reset/{secret}"
    try:
        await mailer.send(resets.reset_email(accounts[0].email, links))
    except MailFailed:
        return  # The mailer has logged it.


async def _reset(request: AnyRequest) -> OpenReset:
    state = request.app.state
    return await resets.open_reset(state.databases, request.path_params["secret"], pepper=state.pepper)


async def _form(request: AnyRequest, reset: OpenReset, *, status: int = 200, fault: str = "") -> Response[str]:
    """The form, with what the new password ends."""
    databases, person_id, within = request.app.state.databases, reset.person_id, reset.confined_to
    return page(
        request,
        "reset.html",
        status=status,
        email=reset.email,
        passkeys=await passkeys.list_passkeys(databases, person_id, within=within),
        identities=await own.list_own_identities(databases, person_id),
        sessions=await sessions.list_sessions(databases, person_id, within=within),
        fault=fault,
    )
