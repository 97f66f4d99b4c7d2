"""/passkeys and /account/passkeys: sign in with a passkey, and add, name and remove one's own."""

from litestar import Controller, Response, post
from litestar.response import Redirect

from recollect.accounts.identity.model import hash_secret
from recollect.accounts.identity_providers import own
from recollect.accounts.passkeys import service as passkeys
from recollect.accounts.people import notices, sessions
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Confinement
from recollect.errors import Conflict, InvalidInput, Unauthenticated
from recollect_gateway.callers.browser_sessions import signed_in
from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.callers.sign_in_attempts import take_for_own_account
from recollect_gateway.web.account import account_page
from recollect_gateway.web.notices import send_notice
from recollect_gateway.web.pages import passkey_site, safe_next_url
from recollect_gateway.web.sessions import browser_of, session_cookie
from recollect_gateway.web.sign_in import sign_in_page
from recollect_http.client_addresses import site_of_client
from recollect_http.requests import AnyRequest
from recollect_http.web.forms import field, random_cookie, read_form
from recollect_http.web.rendering import go_to


class PasskeyController(Controller):
    """Signs people in with any of their passkeys that the browser has."""

    path = "/passkeys/sign-in"
    include_in_schema = False
    guards = (by_address("passkey", lambda settings: settings.sign_ins_per_minute),)

    @post("/options", status_code=200)
    async def options(self, request: AnyRequest) -> Response[str]:
        """The options by which the browser signs with a passkey."""
        await read_form(request)
        state = request.app.state
        return _json(await passkeys.begin_sign_in(state.databases.home, _browser(request), passkey_site(request)))

    @post("/")
    async def sign_in(self, request: AnyRequest) -> Response[str] | Redirect:
        """Begin a session and go on, or show the sign-in page again."""
        form, state = await read_form(request), request.app.state
        next_url = safe_next_url(field(form, "next"))
        try:
            passkey = await passkeys.sign_in(
                state.databases, _browser(request), passkey_site(request), field(form, "credential")
            )
        except Unauthenticated as error:
            return await sign_in_page(request, next_url, status=401, fault=error.message)
        confinement = Confinement.of_account(passkey.confined_to)
        issued = await sessions.begin_session(
            state.databases, passkey.person_id, browser_of(request), pepper=state.pepper, confinement=confinement
        )
        answer = go_to(next_url)
        answer.set_cookie(session_cookie(request, issued))
        return answer


class OwnPasskeyController(Controller):
    """The passkeys of the signed-in person."""

    path = "/account/passkeys"
    include_in_schema = False

    @post("/options", status_code=200)
    async def options(self, request: AnyRequest) -> Response[str]:
        """The options by which the browser makes a passkey."""
        await read_form(request)
        session = await signed_in(request)
        if session is None:
            raise Unauthenticated("Sign in first.")
        state = request.app.state
        return _json(await passkeys.begin_adding(state.databases, session, _browser(request), passkey_site(request)))

    @post("/")
    async def add(self, request: AnyRequest) -> Response[str] | Redirect:
        """Add a passkey. A person with a password must enter it: a stolen session must not become a lasting way in."""
        form, state, session = await read_form(request), request.app.state, await signed_in(request)
        if session is None:
            return go_to("/sign-in")
        await take_for_own_account(request, session.person_id)
        try:
            password_changes = await people.require_own_password(state.databases, session, field(form, "password"))
            await passkeys.add(
                state.databases,
                session,
                _browser(request),
                passkey_site(request),
                name=field(form, "name"),
                credential=field(form, "credential"),
                password_changes=password_changes,
            )
        except (InvalidInput, Conflict) as error:
            return await account_page(request, session, status=400, fault=error.message)
        send_notice(
            request, lambda mailer: notices.notify_of_passkey(mailer, session.email, address=site_of_client(request))
        )
        return await account_page(request, session, done="The passkey was added: you can sign in with it.")

    @post("/{passkey_id:uuid}/name")
    async def rename(self, request: AnyRequest) -> Response[str] | Redirect:
        """Rename a passkey."""
        form, session = await read_form(request), await signed_in(request)
        if session is None:
            return go_to("/sign-in")
        databases, passkey_id = request.app.state.databases, request.path_params["passkey_id"]
        try:
            await passkeys.rename(databases, session, passkey_id, field(form, "name"))
        except InvalidInput as error:
            return await account_page(request, session, status=400, fault=error.message)
        return go_to("/account")

    @post("/{passkey_id:uuid}/remove")
    async def remove(self, request: AnyRequest) -> Response[str] | Redirect:
        """Remove a passkey, unless it is the last way to sign in."""
        await read_form(request)
        session = await signed_in(request)
        if session is None:
            return go_to("/account")
        passkeys.require_whole(session)
        try:
            await own.remove_passkey(request.app.state.databases, session, request.path_params["passkey_id"])
        except Conflict as error:
            return await account_page(request, session, status=409, fault=error.message)
        return go_to("/account")


def _browser(request: AnyRequest) -> bytes:
    """An id of this browser: the hash of the cookie to which its forms are bound."""
    return hash_secret(random_cookie(request, "form") or "", request.app.state.pepper)


def _json(options: str) -> Response[str]:
    return Response(options, media_type="application/json")
