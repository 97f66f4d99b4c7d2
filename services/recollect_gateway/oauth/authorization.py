"""/oauth/authorize: a browser brings the request of a client, and takes back a code or an error.

A person signs in first. Then the client and its request are checked. Until it is known that the address to go back to
is the client's own, an error is a page, and no browser is sent anywhere.
"""

from collections.abc import Mapping
from typing import Any

from litestar import Controller, Response, get, post
from litestar.datastructures import State
from litestar.response import Redirect

from recollect.accounts.oauth.clients import service as clients
from recollect.accounts.oauth.clients.model import destination
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Membership, PersonSession
from recollect.accounts.tenants.model import SLUG
from recollect.errors import InvalidInput
from recollect.graph.graphs import service as graphs
from recollect_gateway.callers.browser_sessions import signed_in
from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.oauth.authorization_requests import (
    AuthorizationEndpoint,
    AuthorizationRequest,
    RedirectedError,
    Unanswerable,
)
from recollect_gateway.oauth.consent import (
    ALLOW,
    CHECKED,
    MAX_GRAPHS,
    ConsentQuestion,
    approval,
    consent_page,
    organisation_page,
)
from recollect_gateway.oauth.discovery import AUTHORIZE
from recollect_gateway.oauth.documents import NoClient
from recollect_gateway.oauth.forms import read_query
from recollect_gateway.web.pages import page
from recollect_gateway.web.sessions import to_sign_in
from recollect_http.client_addresses import site_of_client
from recollect_http.requests import AnyRequest
from recollect_http.requests.urlencoded import MalformedParameters
from recollect_http.web.forms import field, read_form

NOT_A_MEMBER = "You are signed in as {email}, who is not a member of any organisation at this address."
NOTHING_ALLOWED = "Your role in {tenant} is {role}, which allows nothing that the client asks for."


class AuthorizationController(Controller):
    """Asks a person whether a client may act for them."""

    path = AUTHORIZE
    include_in_schema = False
    guards = (by_address("oauth", lambda settings: settings.oauth_requests_per_minute),)

    @get("/")
    async def show(self, request: AnyRequest, state: State) -> Response[Any]:
        """Sign in, choose the organisation where there are several, and the consent page."""
        return await _answer(request, state, None)

    @post("/")
    async def decide(self, request: AnyRequest, state: State) -> Response[Any]:
        """Allow or deny: the browser goes back to the client, with a code or an error."""
        return await _answer(request, state, await read_form(request, several=CHECKED))


async def _answer(request: AnyRequest, state: State, form: Mapping[str, list[str]] | None) -> Response[Any]:
    person = None
    try:
        parameters = read_query(request)
        person = await signed_in(request)
        if person is None:
            return await _sign_in_first(request, state, parameters)
        authorization = await _authorization_request(state, parameters, person)
        if "none" in authorization.prompts:
            raise _endpoint(state).prompt_needed(
                authorization, "consent_required", "A person must be asked for consent."
            )
        return await _ask_person(request, state, parameters, person, authorization, form)
    except RedirectedError as error:
        return await _answer_refusal(request, state, person, error)
    except (Unanswerable, NoClient, MalformedParameters) as error:
        return page(request, "message.html", status=400, title="This cannot be done", text=str(error))


async def _sign_in_first(request: AnyRequest, state: State, parameters: Mapping[str, str]) -> Response[Any]:
    """Send the person to sign in; raises RedirectedError where the client wants no page to be shown."""
    if "none" not in parameters.get("prompt", "").split():
        return to_sign_in(request)
    client = await clients.find_client(state.databases.home, parameters.get("client_id", ""))
    if client is None:
        raise Unanswerable("No client has this id.")
    endpoint = _endpoint(state)
    authorization = endpoint.check(parameters, client, lambda uri: _find_resource(state, uri))
    raise endpoint.prompt_needed(authorization, "login_required", "Nobody is signed in.")


async def _answer_refusal(
    request: AnyRequest, state: State, person: PersonSession | None, error: RedirectedError
) -> Response[Any]:
    """Send the browser back to the client whose request is refused, at once if the client acts for the person already.

    Else a page asks the person first: anybody may register a client, and links to this server would otherwise lead to
    any address (RFC 9700, 4.11.2).
    """
    if person is not None:
        own_grants = await grants.list_own_grants(state.databases, person.person_id, within=person.confined_to)
        if any(grant.client_id == error.client.id for grant in own_grants):
            return _back(error.location)
    goes_to = destination(error.location)
    return page(request, "refused.html", status=400, error=error, goes_to=goes_to)


async def _authorization_request(
    state: State, parameters: Mapping[str, str], person: PersonSession
) -> AuthorizationRequest:
    client = await state.known_clients.get(parameters.get("client_id", ""), on_behalf_of=person.person_id)
    return _endpoint(state).check(parameters, client, lambda uri: _find_resource(state, uri))


async def _ask_person(
    request: AnyRequest,
    state: State,
    parameters: Mapping[str, str],
    person: PersonSession,
    authorization: AuthorizationRequest,
    form: Mapping[str, list[str]] | None,
) -> Response[Any]:
    """The page that asks the person, or, once their form has come, the way back to the client."""
    if form is not None and field(form, "decision") != ALLOW:
        return _back(_endpoint(state).denial_location(authorization))
    memberships = await _memberships(state, person, authorization, parameters.get("tenant"))
    if len(memberships) > 1:
        return organisation_page(request, authorization, memberships)
    question = await _question(state, authorization, person, memberships[0])
    if form is None:
        return consent_page(request, question)
    try:
        approved = approval(question, form)
    except InvalidInput as error:
        return consent_page(request, question, fault=error.message)
    approver = grants.approving(memberships[0], person.person_id, address=site_of_client(request))
    async with state.databases.of(approver.tenant_id).transaction(approver) as tx:
        code = await grants.approve(tx, approved, pepper=state.pepper)
    return _back(_endpoint(state).approval_location(authorization, code))


async def _memberships(
    state: State, person: PersonSession, authorization: AuthorizationRequest, chosen: str | None
) -> list[Membership]:
    """The person's memberships that the request may concern: one where the resource or the person names the tenant.

    Raises Unanswerable, with one message for tenants that do not exist and for others' tenants; and Unavailable.
    """
    tenant, within = state.resources.find(authorization.resource).tenant or chosen, person.confined_to
    if tenant is None:
        found = await people.list_memberships(state.databases, person.person_id, within=within, strict=True)
    else:
        is_slug = SLUG.fullmatch(tenant)
        membership = (
            await people.find_membership(state.databases, person.person_id, tenant, within=within) if is_slug else None
        )
        found = [membership] if membership else []
    active = [membership for membership in found if membership.tenant_status == "active"]
    if not active:
        raise Unanswerable(NOT_A_MEMBER.format(email=person.email))
    return active


async def _question(
    state: State, authorization: AuthorizationRequest, person: PersonSession, membership: Membership
) -> ConsentQuestion:
    approver = grants.approving(membership, person.person_id)
    async with state.databases.of(approver.tenant_id).transaction(approver, read_only=True) as tx:
        offered_graphs = await graphs.list_graphs(tx, limit=MAX_GRAPHS)
    question = ConsentQuestion(authorization, person, membership, offered_graphs)
    if not set(question.scopes) - {"offline_access"}:
        raise Unanswerable(NOTHING_ALLOWED.format(tenant=membership.tenant_name, role=membership.role))
    return question


def _find_resource(state: State, uri: str | None) -> str | None:
    """The resource that a client asks for; that of all tenants where it names none."""
    found = state.resources.of(None) if uri is None else state.resources.find(uri)
    return found.uri if found else None


def _endpoint(state: State) -> AuthorizationEndpoint:
    return AuthorizationEndpoint(state.resources.base if state.settings.oauth_issuer_parameter else None)


def _back(location: str) -> Redirect:
    """Send the browser back to the client. The address is for the client alone."""
    return Redirect(location, status_code=303, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
