"""/account: the page of a signed-in person, on which they end grants, connections and memberships."""

from litestar import Controller, Response, post
from litestar.response import Redirect

from recollect.accounts.identity_providers import own
from recollect.accounts.identity_providers import service as providers
from recollect.accounts.members import service as members
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.passkeys import service as passkeys
from recollect.accounts.people import service as people
from recollect.accounts.people import sessions
from recollect.accounts.people.model import PersonSession
from recollect.errors import Conflict, ErrorCode, NotFound
from recollect_gateway.callers.browser_sessions import signed_in
from recollect_gateway.web.pages import page, passkey_context
from recollect_http.client_addresses import site_of_client
from recollect_http.requests import AnyRequest
from recollect_http.web.forms import read_form
from recollect_http.web.rendering import go_to

MAX_CONNECTABLE = 50
"""Organisations of a person whose providers the account offers to connect."""


class OwnGrantController(Controller):
    """The grants of the signed-in person to clients, in all tenants."""

    path = "/account/grants"
    include_in_schema = False

    @post("/{grant_id:uuid}/end")
    async def end_grant(self, request: AnyRequest) -> Redirect:
        """End one grant; its client loses access at once."""
        await read_form(request)
        session = await signed_in(request)
        if session is not None:
            databases, grant_id = request.app.state.databases, request.path_params["grant_id"]
            await grants.end_own_grant(databases, session.person_id, grant_id, within=session.confined_to)
        return go_to("/account")


class OwnIdentityController(Controller):
    """The identities of the signed-in person at identity providers."""

    path = "/account/providers"
    include_in_schema = False

    @post("/{provider_id:uuid}/disconnect")
    async def disconnect(self, request: AnyRequest) -> Response[str] | Redirect:
        """Disconnect one identity, unless it is the last way to sign in."""
        await read_form(request)
        session = await signed_in(request)
        if session is None:
            return go_to("/sign-in")
        provider_id = request.path_params["provider_id"]
        try:
            await own.disconnect(request.app.state.databases, session, provider_id, address=site_of_client(request))
        except Conflict as error:
            return await account_page(request, session, status=409, fault=error.message)
        return go_to("/account")


class MembershipController(Controller):
    """The memberships of the signed-in person."""

    path = "/account/organisations"
    include_in_schema = False

    @post("/{tenant:str}/leave")
    async def leave(self, request: AnyRequest) -> Response[str] | Redirect:
        """End one membership, and the person's grants in that tenant."""
        await read_form(request)
        session = await signed_in(request)
        if session is None:
            return go_to("/sign-in")
        try:
            await _leave(request, session, request.path_params["tenant"])
        except Conflict as error:
            return await account_page(request, session, status=409, fault=error.message)
        return go_to("/account")


async def account_page(
    request: AnyRequest, session: PersonSession, *, status: int = 200, fault: str = "", done: str = ""
) -> Response[str]:
    """The account page of a signed-in person."""
    databases, person_id, within = request.app.state.databases, session.person_id, session.confined_to
    is_own, origins = not session.by_provider, request.app.state.resources.origins
    memberships = await people.list_memberships(databases, person_id, within=within)
    slugs = [membership.tenant for membership in memberships[:MAX_CONNECTABLE]]
    return page(
        request,
        "account.html",
        status=status,
        me=session,
        memberships=memberships,
        providers=await providers.offered(databases, slugs) if is_own else [],
        sessions=await sessions.list_sessions(databases, person_id, within=within),
        grants=await grants.list_own_grants(databases, person_id, within=within),
        identities=await own.list_own_identities(databases, person_id) if is_own else [],
        passkeys=await passkeys.list_passkeys(databases, person_id, within=within) if is_own else [],
        fault=fault,
        done=done,
        base=origins.asked_at(request.headers.get("host", "")),
        **passkey_context(request),
    )


async def _leave(request: AnyRequest, session: PersonSession, tenant: str) -> None:
    """Leave a tenant. Raises NotFound, alike for missing and for others' tenants; Conflict for the last owner."""
    databases = request.app.state.databases
    membership = await people.find_membership(databases, session.person_id, tenant, within=session.confined_to)
    if membership is None:
        raise NotFound("You are not a member of such an organisation.", code=ErrorCode.MEMBER_NOT_FOUND)
    caller = grants.approving(membership, session.person_id)
    async with databases.of(caller.tenant_id).transaction(caller) as tx:
        await members.remove_member(tx, session.person_id)
