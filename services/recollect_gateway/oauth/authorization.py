"""/oauth/authorize: a browser brings what a client asks for, and takes back a code or an error.

A person signs in first. Then the client is looked at, and what it asks; until it is known that the address to go back
to is the client's own, an error is a page, and no browser is sent anywhere.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from litestar import Controller, Request, Response, get, post
from litestar.datastructures import State
from litestar.response import Redirect

from recollect.accounts.oauth.clients import service as clients
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Membership, PersonSession
from recollect.accounts.tenants.model import SLUG
from recollect.errors import InvalidInput
from recollect.graph.graphs import service as graphs
from recollect_gateway.addresses import site_of_client
from recollect_gateway.admission import by_address
from recollect_gateway.oauth.authorization_requests import (
    AuthorizationEndpoint,
    AuthorizationRequest,
    RedirectedError,
    Unanswerable,
)
from recollect_gateway.oauth.consent import ALLOW, CHECKED, MAX_GRAPHS, ConsentQuestion, approval, ask, ask_where
from recollect_gateway.oauth.discovery import AUTHORIZE
from recollect_gateway.oauth.documents import NoClient
from recollect_gateway.oauth.forms import read_query
from recollect_gateway.urlencoded import MalformedParameters
from recollect_gateway.web.forms import field, read_form
from recollect_gateway.web.pages import page
from recollect_gateway.web.sessions import signed_in, to_sign_in

AnyRequest = Request[Any, Any, Any]
NOT_A_MEMBER = "You are signed in as {email}, and are no member of an organisation at this address."
NOTHING_ALLOWED = "Your role in {tenant} is {role}: it may do nothing of what the client asks for."


class AuthorizationController(Controller):
    """Asks a person whether a client may act for them."""

    path = AUTHORIZE
    include_in_schema = False
    guards = (by_address("oauth", lambda settings: settings.oauth_requests_per_minute),)

    @get("/")
    async def show(self, request: AnyRequest, state: State) -> Response[Any]:
        """Sign in, choose the organisation where there are several, and the consent page."""
        return await _answered(request, state, None)

    @post("/")
    async def decide(self, request: AnyRequest, state: State) -> Response[Any]:
        """Allow or deny: the browser goes back to the client, with a code or an error."""
        return await _answered(request, state, await read_form(request, several=CHECKED))


async def _answered(request: AnyRequest, state: State, form: Mapping[str, list[str]] | None) -> Response[Any]:
    person = None
    try:
        parameters = read_query(request)
        person = await signed_in(request)
        if person is None:
            return await _signed_out(request, state, parameters)
        asked = await _request(state, parameters, person)
        if "none" in asked.prompts:
            raise _endpoint(state).unasked(asked, "consent_required", "A person has to be asked.")
        return await _asked_of(request, state, parameters, person, asked, form)
    except RedirectedError as error:
        return await _refused(request, state, person, error)
    except (Unanswerable, NoClient, MalformedParameters) as error:
        return page(request, "message.html", status=400, title="This cannot be done", said=str(error))


async def _signed_out(request: AnyRequest, state: State, parameters: Mapping[str, str]) -> Response[Any]:
    """Sign in; raises RedirectedError where the client asks for no page to be shown."""
    if "none" not in parameters.get("prompt", "").split():
        return to_sign_in(request)
    client = await clients.find_client(state.db, parameters.get("client_id", ""))
    if client is None:
        raise Unanswerable("No client has this id.")
    endpoint = _endpoint(state)
    asked = endpoint.check(parameters, client, lambda named: _resource(state, named))
    raise endpoint.unasked(asked, "login_required", "Nobody is signed in.")


async def _refused(
    request: AnyRequest, state: State, person: PersonSession | None, error: RedirectedError
) -> Response[Any]:
    """Back to a client whose request is refused: by itself where it acts for the person already, else if they wish.

    Anybody may register a client: its address would else be one to which links to this server lead (RFC 9700, 4.11.2).
    """
    if person is not None:
        held = await grants.list_own_grants(state.db, person.person_id, within=person.confined_to)
        if any(grant.client_id == error.client.id for grant in held):
            return _back(error.location)
    goes_to = urlsplit(error.location).netloc
    return page(request, "refused.html", status=400, error=error, goes_to=goes_to)


async def _request(state: State, parameters: Mapping[str, str], person: PersonSession) -> AuthorizationRequest:
    client = await state.known_clients.get(parameters.get("client_id", ""), asked_by=person.person_id)
    return _endpoint(state).check(parameters, client, lambda named: _resource(state, named))


async def _asked_of(
    request: AnyRequest,
    state: State,
    parameters: Mapping[str, str],
    person: PersonSession,
    asked: AuthorizationRequest,
    form: Mapping[str, list[str]] | None,
) -> Response[Any]:
    if form is not None and field(form, "decision") != ALLOW:
        return _back(_endpoint(state).denied(asked))
    memberships = await _memberships(state, person, asked, parameters.get("tenant"))
    if len(memberships) > 1:
        return ask_where(request, asked, memberships)
    question = await _question(state, asked, person, memberships[0])
    if form is None:
        return ask(request, question)
    try:
        approved = approval(question, form)
    except InvalidInput as error:
        return ask(request, question, fault=error.message)
    giver = grants.approving(memberships[0], person.person_id, address=site_of_client(request))
    async with state.db.transaction(giver) as tx:
        code = await grants.approve(tx, approved, pepper=state.pepper)
    return _back(_endpoint(state).approved(asked, code))


async def _memberships(
    state: State, person: PersonSession, asked: AuthorizationRequest, chosen: str | None
) -> list[Membership]:
    """The organisations that it may be about: a tenant's own address names it, else the person chooses among theirs.

    Raises Unanswerable, alike for a tenant that is not there and for one of others; and Unavailable.
    """
    wanted, within = state.resources.named(asked.resource).tenant or chosen, person.confined_to
    if wanted is None:
        found = await people.list_memberships(state.db, person.person_id, within=within, sure=True)
    else:
        is_slug = SLUG.fullmatch(wanted)
        one = await people.find_membership(state.db, person.person_id, wanted, within=within) if is_slug else None
        found = [one] if one else []
    active = [each for each in found if each.tenant_status == "active"]
    if not active:
        raise Unanswerable(NOT_A_MEMBER.format(email=person.email))
    return active


async def _question(
    state: State, asked: AuthorizationRequest, person: PersonSession, membership: Membership
) -> ConsentQuestion:
    async with state.db.transaction(grants.approving(membership, person.person_id), read_only=True) as tx:
        there = await graphs.list_graphs(tx, limit=MAX_GRAPHS)
    question = ConsentQuestion(asked, person, membership, there)
    if not set(question.scopes) - {"offline_access"}:
        raise Unanswerable(NOTHING_ALLOWED.format(tenant=membership.tenant_name, role=membership.role))
    return question


def _resource(state: State, named: str | None) -> str | None:
    """The resource that a client asks for; that of all tenants where it names none."""
    found = state.resources.of(None) if named is None else state.resources.named(named)
    return found.uri if found else None


def _endpoint(state: State) -> AuthorizationEndpoint:
    return AuthorizationEndpoint(state.resources.base if state.settings.oauth_issuer_parameter else None)


def _back(location: str) -> Redirect:
    """Back to the client. What the address holds is for it alone."""
    return Redirect(location, status_code=303, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
