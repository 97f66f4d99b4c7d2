"""Signing in by a tenant's identity provider: sending the browser there, and taking it back.

The state that goes through the provider and a cookie of the browser belong together: one of them alone is worth
nothing. Each provider has its own callback address, so that none can answer for another.
"""

import secrets
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.accounts.email_domains import service as email_domains
from recollect.accounts.identity_providers import service as providers
from recollect.accounts.identity_providers.model import (
    MAX_RETURNED,
    OfferedProvider,
    ProviderSession,
    Purpose,
    Returned,
    SignInRefused,
    SignInSecrets,
)
from recollect.accounts.identity_providers.service import PendingSignIn
from recollect.accounts.members import service as members
from recollect.accounts.people import sessions
from recollect.accounts.people.model import Confinement, PersonSession
from recollect.accounts.tenants.model import SLUG
from recollect.errors import NotFound
from recollect_gateway.callers.browser_sessions import signed_in
from recollect_gateway.callers.oauth_resources import Resources
from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.web.pages import ACCOUNT, CONSOLE, page, safe_next_url
from recollect_gateway.web.sessions import browser_of, session_cookie
from recollect_http.requests import AnyRequest
from recollect_http.requests.urlencoded import MalformedParameters, parameters
from recollect_http.web.forms import MAX_FIELDS, field, own_cookie, random_cookie, read_form
from recollect_http.web.rendering import go_to

BEGIN = "/sign-in/provider"
CALLBACK = "/sign-in/callback"
COOKIE = "provider"
COOKIE_SECONDS = 600

_GUARD = by_address("sign-in", lambda settings: settings.sign_ins_per_minute)


class ProviderSignInController(Controller):
    """Sends browsers to identity providers, and takes them back."""

    path = "/sign-in"
    include_in_schema = False
    guards = (_GUARD,)

    @post("/provider")
    async def begin(self, request: AnyRequest) -> Response[str]:
        """Begin a sign-in: a page that goes on to the provider by itself.

        It is no redirect: after a form, browsers allow redirects to our own addresses only.
        """
        form = await read_form(request)
        state = request.app.state
        provider = await _chosen(request, field(form, "organization"), field(form, "provider"))
        purpose = await _purpose(request, form, provider)
        cookie = random_cookie(request, COOKIE) or secrets.token_urlsafe(32)
        pending = PendingSignIn(SignInSecrets.new(cookie, state.pepper), redirect_uri(request, provider.id))
        url = await providers.begin(
            state.databases.of(provider.tenant_id), state.relying_party, provider, purpose, pending
        )
        answer = page(request, "to_provider.html", url=url, name=provider.name)
        answer.set_cookie(own_cookie(request, COOKIE, cookie, max_age=COOKIE_SECONDS))
        return answer

    @get("/callback/{provider_id:uuid}")
    async def back(self, request: AnyRequest, provider_id: FromPath[UUID]) -> Redirect:
        """Begin a session of the person who came back, and go on."""
        callback = _callback_parameters(request)
        state, session = request.app.state, await signed_in(request)
        pending = PendingSignIn(
            SignInSecrets(callback.get("state", ""), random_cookie(request, COOKIE) or "", state.pepper),
            redirect_uri(request, provider_id),
        )
        returned = Returned(callback.get("code"), callback.get("iss"))
        proven = await providers.finish(
            state.databases, state.relying_party, state.text_records, provider_id, returned, pending, session
        )
        answer = go_to(safe_next_url(proven.return_to))
        if session is None or session.person_id != proven.person_id or session.by_provider:
            await _sign_in(request, answer, proven, session)
        return answer


async def _sign_in(
    request: AnyRequest, answer: Redirect, proven: ProviderSession, former: PersonSession | None
) -> None:
    """Begin a session by the provider; the browser's former session ends."""
    state = request.app.state
    if former is not None:
        await sessions.end_session(state.databases, former.person_id, former.id, within=former.confined_to)
    confinement = Confinement(proven.tenant_id, proven.provider_id)
    issued = await sessions.begin_session(
        state.databases, proven.person_id, browser_of(request), pepper=state.pepper, confinement=confinement
    )
    answer.set_cookie(session_cookie(request, issued))


def redirect_uri(request: AnyRequest, provider_id: UUID) -> str:
    """The address to which a provider sends browsers back: exactly the one registered there."""
    return callback_of(request.app.state.settings.base_url, provider_id)


def callback_of(base_url: str, provider_id: UUID) -> str:
    """The callback address of a provider at a gateway with this public address."""
    return f"{base_url}{CALLBACK}/{provider_id}"


async def find_organization(request: AnyRequest, next_url: str, entered: str | None) -> str:
    """The organisation whose providers a sign-in page offers: the one entered, or else the one that `next_url` is for.

    An email address stands for the organisation that has its domain. `next_url`, the address to go on to, may be a
    client's request for an organisation's endpoint. Empty where there is none, or it is malformed.
    """
    if entered is None:
        resources: Resources = request.app.state.resources
        uri = parse_qs(urlsplit(next_url).query).get("resource", [""])[0]
        resource = resources.find(uri)
        slug = (resource.tenant if resource else None) or ""
    else:
        slug = entered.strip().lower()
    if "@" in slug:
        slug = await email_domains.tenant_of(request.app.state.databases, slug) or ""
    return slug if SLUG.fullmatch(slug) else ""


async def offered_to(request: AnyRequest, organization: str) -> list[OfferedProvider]:
    """The providers of an organisation; empty where there is no such organisation, or it has none."""
    return await providers.offered(request.app.state.databases, [organization] if organization else [])


async def _chosen(request: AnyRequest, organization: str, provider_id: str) -> OfferedProvider:
    for provider in await offered_to(request, organization if SLUG.fullmatch(organization) else ""):
        if str(provider.id) == provider_id:
            return provider
    raise NotFound("There is no such identity provider, or it can no longer be used to sign in.")


async def _purpose(request: AnyRequest, form: dict[str, list[str]], provider: OfferedProvider) -> Purpose:
    """The purpose of the sign-in. Raises NotFound for an invitation that does not hold, or is of another tenant."""
    next_url, state = safe_next_url(field(form, "next")), request.app.state
    if secret := field(form, "invitation"):
        invitation = await members.open_invitation(state.databases, secret, pepper=state.pepper)
        if invitation.tenant_id != provider.tenant_id:
            raise NotFound("There is no such identity provider, or it can no longer be used to sign in.")
        return Purpose(f"{CONSOLE}/{invitation.tenant}", invitation_id=invitation.id)
    if field(form, "connect"):
        session = await signed_in(request)
        if session is None or session.by_provider:
            raise SignInRefused("Sign in with your password first, and then connect the provider.")
        return Purpose(ACCOUNT, person_id=session.person_id)
    return Purpose(next_url)


def _callback_parameters(request: AnyRequest) -> dict[str, str]:
    """The parameters of the callback, each once and of bounded length. Raises SignInRefused."""
    try:
        found = parameters(request.scope["query_string"], limit=MAX_FIELDS)
    except MalformedParameters:
        raise SignInRefused("This is not an answer of an identity provider.") from None
    if any(len(value) > MAX_RETURNED for (value,) in found.values()):
        raise SignInRefused("This is not an answer of an identity provider.")
    return {name: value for name, (value,) in found.items()}
