"""/oauth/token, /oauth/revoke, /oauth/introspect, and the keys by which ID tokens are verified."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from litestar import Controller, Response, get, post
from litestar.datastructures import State

from recollect.accounts.identity.model import kind_of
from recollect.accounts.oauth.clients import service as clients
from recollect.accounts.oauth.clients.model import OAuthClient
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import (
    ACCESS,
    CODE,
    OPENID,
    REFRESH,
    IssuedTokens,
    PresentedCode,
    PresentedRefresh,
    TokenTimes,
    authorization_server,
)
from recollect.accounts.oauth.signing import service as signing
from recollect.postgres.transactions import Transaction
from recollect_gateway.oauth.discovery import DISCOVERED, INTROSPECT, JWKS, REVOKE, TOKEN
from recollect_gateway.oauth.errors import ERROR_HANDLERS
from recollect_gateway.oauth.forms import read_form
from recollect_gateway.oauth.protocol import NOT_STORED, OAuthAnswer, Refused, RequestServer
from recollect_http.requests import AnyRequest
from recollect_http.requests.urlencoded import MalformedParameters

Parameters = Mapping[str, str]
SECRET_OF = {"authorization_code": ("code", CODE), "refresh_token": ("refresh_token", REFRESH)}
"""For each grant type, the parameter with its secret, and the secret's kind."""


class TokenController(Controller):
    """Issues, revokes and introspects tokens for clients, without a person."""

    include_in_schema = False
    exception_handlers = ERROR_HANDLERS

    @post(TOKEN)
    async def token(self, request: AnyRequest, state: State) -> Response[dict[str, Any]]:
        """Tokens for a code, or for a refresh token."""
        return await _answer_form(request, lambda parameters, client: _tokens(state, parameters, client))

    @post(REVOKE)
    async def revoke(self, request: AnyRequest, state: State) -> Response[dict[str, Any]]:
        """Revoke a token for its client (RFC 7009); with a refresh token, all tokens of its grant."""
        return await _answer_form(
            request, lambda parameters, client: _token_endpoint(state, parameters, client, "revocation")
        )

    @post(INTROSPECT)
    async def introspect(self, request: AnyRequest, state: State) -> Response[dict[str, Any]]:
        """Describe a token to its own client (RFC 7662)."""
        return await _answer_form(
            request, lambda parameters, client: _token_endpoint(state, parameters, client, "introspection")
        )

    @get(JWKS)
    async def keys(self, state: State) -> Response[dict[str, Any]]:
        """The public keys of ID tokens."""
        return Response({"keys": await state.published_keys.get()}, headers=DISCOVERED)


async def _answer_form(
    request: AnyRequest, handle: Callable[[Parameters, OAuthClient | None], Awaitable[OAuthAnswer]]
) -> Response[dict[str, Any]]:
    """The answer of `handle` to a form and the client that it names."""
    try:
        parameters = await read_form(request)
        client = await clients.find_client(request.app.state.databases.home, parameters.get("client_id", ""))
        answer = await handle(parameters, client)
    except MalformedParameters as error:
        answer = OAuthAnswer(400, {"error": "invalid_request", "error_description": str(error)})
    except Refused as refused:
        answer = refused.answer
    return Response(answer.body, status_code=answer.status, headers=NOT_STORED)


async def _tokens(state: State, parameters: Parameters, client: OAuthClient | None) -> OAuthAnswer:
    name, kind = SECRET_OF.get(parameters.get("grant_type", ""), ("", ""))
    secret = parameters.get(name, "")
    tenant_id = (
        await grants.find_tenant(state.databases, secret, pepper=state.pepper) if kind_of(secret) == kind else None
    )
    if tenant_id is None or client is None:
        return _token_error(RequestServer(parameters, client), state)
    async with state.databases.of(tenant_id).transaction(authorization_server(tenant_id)) as tx:
        presented = await _present(state, tx, kind, secret, client, verifier=parameters.get("code_verifier"))
        server = RequestServer(parameters, client, presented=presented)
        try:
            grant = server.require_valid_token_request(lambda uri: _find_resource(state, uri))
        except Refused as refused:
            return refused.answer  # The transaction commits: a secret that was used again has ended its grant.
        assert presented is not None
        issued = await _issue(state, tx, presented, parameters, client)
        answer = server.token_answer(grant, issued)
    await clients.note_used(state.databases.home, client.id)
    if isinstance(presented, PresentedCode) and OPENID in issued.scopes:
        answer.body["id_token"] = await _id_token(state, presented, client)
    return answer


def _token_error(server: RequestServer, state: State) -> OAuthAnswer:
    """Authlib's error for a request with an unknown code or token."""
    try:
        server.require_valid_token_request(lambda uri: _find_resource(state, uri))
    except Refused as refused:
        return refused.answer
    raise AssertionError("nothing was presented")


async def _present(
    state: State, tx: Transaction, kind: str, secret: str, client: OAuthClient, *, verifier: str | None
) -> PresentedCode | PresentedRefresh | None:
    if kind == CODE:
        return await grants.present_code(tx, secret, client.id, verifier=verifier, pepper=state.pepper)
    times = TokenTimes.of(state.settings)
    return await grants.present_refresh(tx, secret, client.id, times=times, pepper=state.pepper)


async def _issue(
    state: State,
    tx: Transaction,
    presented: PresentedCode | PresentedRefresh,
    parameters: Parameters,
    client: OAuthClient,
) -> IssuedTokens:
    times, pepper = TokenTimes.of(state.settings), state.pepper
    if isinstance(presented, PresentedCode):
        return await grants.redeem_code(tx, presented, refreshes=client.refreshes, times=times, pepper=pepper)
    scopes = tuple(parameters["scope"].split()) if "scope" in parameters else None
    return await grants.refresh(tx, presented, scopes, times=times, pepper=pepper)


async def _token_endpoint(
    state: State, parameters: Parameters, client: OAuthClient | None, endpoint: str
) -> OAuthAnswer:
    """The answer of an endpoint that takes a token. The client's `token_type_hint` is not needed."""
    token = parameters.get("token", "")
    unhinted = {name: value for name, value in parameters.items() if name != "token_type_hint"}
    is_token = kind_of(token) in (ACCESS, REFRESH)
    tenant_id = await grants.find_tenant(state.databases, token, pepper=state.pepper) if is_token else None
    if tenant_id is None or client is None:
        return RequestServer(unhinted, client, issuer=state.resources.base).endpoint_answer(endpoint)
    async with state.databases.of(tenant_id).transaction(authorization_server(tenant_id)) as tx:
        facts = await grants.introspect(tx, token, client.id, pepper=state.pepper)
        server = RequestServer(unhinted, client, presented=facts, issuer=state.resources.base)
        answer = server.endpoint_answer(endpoint)
        if server.revoked_token is not None:
            await grants.give_back(tx, server.revoked_token)
    return answer


async def _id_token(state: State, presented: PresentedCode, client: OAuthClient) -> str:
    claims = {
        "iss": state.resources.base,
        "sub": str(presented.grant.person_id),
        "aud": client.id,
    }
    if presented.nonce is not None:
        claims["nonce"] = presented.nonce
    return await signing.sign(state.databases.home, state.vault, claims)


def _find_resource(state: State, uri: str) -> str | None:
    found = state.resources.find(uri)
    return found.uri if found else None
