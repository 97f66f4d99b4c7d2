"""Credentials: here alone, the credential of a request becomes a Caller.

A credential is an API key or an access token in the Authorization header; or, for routes under /v1, the session of a
browser together with the header that names one of the person's tenants. Of the routes under /v1, those that read and
write memories take access tokens (docs/adr/0025-tokens-of-the-mcp-endpoint-read-and-write-memories.md).
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from litestar.connection import ASGIConnection
from litestar.datastructures import Headers

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import KIND_SCOPES, hash_secret, kind_of
from recollect.accounts.identity.service import NoteUse, StartTask
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import ACCESS
from recollect.accounts.oauth.grants.service import WrongResource
from recollect.accounts.oauth.issuers import service as trusted
from recollect.accounts.oauth.issuers.model import looks_like_token
from recollect.accounts.oauth.issuers.service import NotTrusted, PresentedToken
from recollect.accounts.people import sessions
from recollect.accounts.people.model import PersonSession
from recollect.accounts.token_issuers import Issuers
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.errors import CredentialEnded, TenantSuspended, Unauthenticated, WrongEndpoint
from recollect_gateway.callers.browser_sessions import TENANT_HEADER, member_caller
from recollect_gateway.callers.oauth_resources import Resources
from recollect_gateway.callers.remembered_callers import PresentedCredential, RememberedCallers
from recollect_http.client_addresses import site_of_client
from recollect_http.failed_keys import FailedKeys
from recollect_http.unknown_keys import UnknownKeys

T = TypeVar("T")

TOKENS_OPT = "tokens"
"""In the `opt` of a route under /v1: whether it takes access tokens that are for an MCP endpoint."""

NOT_HERE = (
    "Access tokens of OAuth are valid at the MCP endpoint, and under /v1 only at routes that read or write memories; "
    "this is not one of them"
)
NOT_OF_ISSUER = "Access tokens of another issuer are valid at the MCP endpoint /t/{tenant}/mcp only"

AnyConnection = ASGIConnection[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Turns `Authorization: Bearer …`, a key or an access token, into a Caller.

    `failed_keys` None throttles nobody; `issuers` or `resources` None accepts tokens of no issuer but ours;
    `start_task` None stores no key's hash anew; `callers` None remembers nobody.
    """

    databases: Databases
    pepper: bytes
    note_use: NoteUse | None = None
    failed_keys: FailedKeys | None = None
    issuers: Issuers | None = None
    start_task: StartTask | None = None
    callers: RememberedCallers | None = None
    resources: Resources | None = None
    unknown_keys: UnknownKeys = field(default_factory=UnknownKeys)

    async def caller(
        self,
        connection: AnyConnection,
        tenant: str | None = None,
        *,
        resource: str | None = None,
        remembered: bool = False,
    ) -> Caller:
        """The Caller of a request, who must belong to `tenant` where the address names one.

        `remembered`: what the database said a few seconds ago is good enough (`remembered_callers.py`).

        An access token must be for `resource`, or for an endpoint of its tenant where that is `Resources.memories`;
        where it is None, no access token holds. Where the address names a tenant, the token may be one of an issuer
        that this tenant trusts.
        Raises Unauthenticated, with one message for every reason, TooManyRequests, or Unavailable.
        """
        secret = _secret(connection.headers)
        presented = (hash_secret(secret, self.pepper), tenant, resource)
        known = self.callers.find(presented) if self.callers is not None and remembered else None
        caller = known or await self._look_up_caller(connection, secret, presented)
        return replace(caller, address=site_of_client(connection))

    async def _look_up_caller(self, connection: AnyConnection, secret: str, presented: PresentedCredential) -> Caller:
        """Look a caller up in the database, and remember it. Raises as `caller` does."""
        _, tenant, resource = presented
        looked_up_at = self.callers.now() if self.callers is not None else 0.0
        try:
            if looks_like_token(secret):
                caller = await self._caller_of_issuer(connection, secret, tenant, resource)
            else:
                site = site_of_client(connection)
                caller = await self._throttled(secret, site, lambda: self._authenticate(secret, resource))
            if tenant not in (None, caller.tenant):
                raise Unauthenticated(identity.REFUSAL)
        except Unauthenticated:
            if self.callers is not None:
                self.callers.drop(presented)
            raise
        if self.callers is not None:
            self.callers.remember(presented, caller, looked_up_at)
        return caller

    async def _caller_of_issuer(
        self, connection: AnyConnection, secret: str, tenant: str | None, resource: str | None
    ) -> Caller:
        """The Caller of a token signed by an issuer that the tenant in the address trusts."""
        issuers, resources = self.issuers, self.resources
        if issuers is None or resources is None or tenant is None or resource is None:
            raise Unauthenticated(identity.REFUSAL)
        presented = PresentedToken(secret, tenant, lambda audience: resources.same(audience, resource))
        return await self._throttled(
            secret, site_of_client(connection), lambda: trusted.authenticate(self.databases, issuers, presented)
        )

    async def caller_of_route(self, connection: AnyConnection, *, remembered: bool = False) -> Caller:
        """The Caller of a request to a route: the holder of a key or, where the route takes any, of an access token;
        or a signed-in member, who is never remembered.

        `remembered` and errors are as in `caller`. It raises WrongEndpoint for a token that the route does not take.
        """
        tenant = connection.headers.get(TENANT_HEADER)
        if tenant is None or "authorization" in connection.headers:
            takes_tokens = bool(connection.scope["route_handler"].opt.get(TOKENS_OPT))
            _require_accepted_here(_secret(connection.headers), takes_tokens=takes_tokens)
            resource = self.resources.memories if takes_tokens and self.resources is not None else None
            return await self.caller(connection, resource=resource, remembered=remembered)
        member = await member_caller(connection, tenant)
        if member is None:
            raise Unauthenticated(identity.REFUSAL)
        return replace(member, address=site_of_client(connection))

    async def session(self, connection: AnyConnection, secret: str) -> PersonSession | None:
        """The session with this secret, or None. A secret that no session ever had counts as a failure of its address.

        Raises TooManyRequests, or Unavailable.
        """
        try:
            return await self._throttled(secret, site_of_client(connection), lambda: self._find_session(secret))
        except Unauthenticated:
            return None

    async def while_valid(self, connection: AnyConnection, parts: AsyncIterator[T]) -> AsyncIterator[T]:
        """The parts of a long transfer; before each, the credential is looked up anew.

        Raises Unauthenticated once it is revoked, or has ended, or its tenant is suspended.
        """
        async for part in parts:
            await self.caller_of_route(connection)
            yield part

    async def _throttled(self, secret: str, site: str, look_up: Callable[[], Awaitable[T]]) -> T:
        """What `look_up` finds for a secret. A client that makes secrets up is refused without a look-up."""
        if self.failed_keys is None:
            return await look_up()
        key = hash_secret(secret, self.pepper)
        self.failed_keys.raise_if_known_invalid(key)
        await self.failed_keys.require_within_rate(key, site)
        try:
            found = await look_up()
        except CredentialEnded as error:
            self.failed_keys.note_ended(key, error)
            raise
        except (TenantSuspended, WrongResource):
            self.failed_keys.note_ended(key, None)
            raise
        except Unauthenticated as error:
            await self.failed_keys.note_failed(key, site, void=not isinstance(error, NotTrusted), error=error)
            raise
        self.failed_keys.note_valid(key)
        return found

    async def _authenticate_token(self, secret: str, resource: str | None) -> Caller:
        """The Caller of an access token, which must be for this resource, or for an endpoint of its tenant."""
        resources = self.resources
        if resources is None or resource != resources.memories:
            return await grants.authenticate(self.databases, secret, resource=resource, pepper=self.pepper)
        return await grants.authenticate(
            self.databases,
            secret,
            resource=resources.of(None).uri,
            of_tenant=lambda tenant: resources.of(tenant).uri,
            pepper=self.pepper,
        )

    async def _find_session(self, secret: str) -> PersonSession:
        found = await sessions.find_session(self.databases, secret, pepper=self.pepper)
        if found is None:
            raise Unauthenticated(identity.REFUSAL)
        session = await sessions.use_session(self.databases, found)
        if session is None:
            raise CredentialEnded(identity.REFUSAL)
        return session

    async def _authenticate(self, secret: str, resource: str | None) -> Caller:
        with self.unknown_keys.watched():
            if kind_of(secret) == ACCESS:
                return await self._authenticate_token(secret, resource)
            return await identity.authenticate(
                self.databases, secret, pepper=self.pepper, note_use=self.note_use, start_task=self.start_task
            )


def _require_accepted_here(secret: str, *, takes_tokens: bool) -> None:
    """Raise WrongEndpoint for what has the form of a token that a route does not take, whether or not it is valid."""
    if looks_like_token(secret):
        raise WrongEndpoint(NOT_OF_ISSUER)
    if kind_of(secret) == ACCESS and not takes_tokens:
        raise WrongEndpoint(NOT_HERE)


def _secret(headers: Headers) -> str:
    """The secret of a request, if it can be a key or a token. Any other costs no look-up and is no failure."""
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    secret = credential.strip()
    is_plausible = kind_of(secret) in (*KIND_SCOPES, ACCESS) or looks_like_token(secret)
    if scheme.lower() != "bearer" or not is_plausible:
        raise Unauthenticated(identity.REFUSAL)
    return secret
