"""Credentials: the one place where what a request brings becomes a Caller.

That is an API key or an access token in the Authorization header; or, for routes under /v1, the session of a browser
together with the header that names one of its person's tenants.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from litestar.connection import ASGIConnection
from litestar.datastructures import Headers

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import KIND_SCOPES, hash_secret, kind_of
from recollect.accounts.identity.service import Beside, NoteUse
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import ACCESS
from recollect.accounts.oauth.grants.service import WrongResource
from recollect.accounts.oauth.issuers import service as trusted
from recollect.accounts.oauth.issuers.model import looks_like_token
from recollect.accounts.oauth.issuers.service import NotTrusted, PresentedToken
from recollect.accounts.people import service as people
from recollect.accounts.people.model import PersonSession
from recollect.caller import Caller
from recollect.errors import TenantSuspended, Unauthenticated
from recollect.platform.db import Database
from recollect.platform.issuers import Issuers
from recollect_gateway.addresses import site_of_client
from recollect_gateway.failures import FailedKeys
from recollect_gateway.remembered import Presented, RememberedCallers
from recollect_gateway.web.forms import TENANT_HEADER
from recollect_gateway.web.sessions import member_caller

T = TypeVar("T")


AnyConnection = ASGIConnection[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Turns `Authorization: Bearer …`, a key or an access token, into a Caller.

    `failed` None throttles nobody; `issuers` None accepts tokens of no issuer but ours; `beside` None stores no key's
    hash anew; `callers` None remembers nobody.
    """

    db: Database
    pepper: bytes
    note_use: NoteUse | None = None
    failed: FailedKeys | None = None
    issuers: Issuers | None = None
    beside: Beside | None = None
    callers: RememberedCallers | None = None

    async def caller(
        self,
        connection: AnyConnection,
        tenant: str | None = None,
        *,
        resource: str | None = None,
        remembered: bool = False,
    ) -> Caller:
        """The Caller of a request, who must be of `tenant` where the address names one.

        Where it may be `remembered`, what the database said a few seconds ago is good enough (`remembered.py`).

        An access token must be for `resource`; where that is None, as beside MCP, none holds. Where the address names a
        tenant, it may be one of an issuer that this tenant trusts.
        Raises Unauthenticated, alike for every reason, TooManyRequests, or Unavailable.
        """
        secret = _secret(connection.headers)
        presented = (hash_secret(secret, self.pepper), tenant, resource)
        known = self.callers.find(presented) if self.callers is not None and remembered else None
        caller = known or await self._found(connection, secret, presented)
        return replace(caller, address=site_of_client(connection))

    async def _found(self, connection: AnyConnection, secret: str, presented: Presented) -> Caller:
        """Who the database says that this is, which is remembered. Raises as `caller` does."""
        _, tenant, resource = presented
        asked_at = self.callers.now() if self.callers is not None else 0.0
        try:
            if looks_like_token(secret):
                caller = await self._foreign(connection, secret, tenant, resource)
            else:
                caller = await self._looked_up(secret, site_of_client(connection), lambda: self._ask(secret, resource))
            if tenant not in (None, caller.tenant):
                raise Unauthenticated(identity.REFUSAL)
        except Unauthenticated:
            if self.callers is not None:
                self.callers.drop(presented)
            raise
        if self.callers is not None:
            self.callers.keep(presented, caller, asked_at)
        return caller

    async def _foreign(
        self, connection: AnyConnection, secret: str, tenant: str | None, resource: str | None
    ) -> Caller:
        """The Caller of a token that an issuer signed whom the tenant in the address trusts."""
        issuers = self.issuers
        if issuers is None or tenant is None or resource is None:
            raise Unauthenticated(identity.REFUSAL)
        presented = PresentedToken(secret, tenant, resource)
        return await self._looked_up(
            secret, site_of_client(connection), lambda: trusted.authenticate(self.db, issuers, presented)
        )

    async def caller_of_route(self, connection: AnyConnection, *, remembered: bool = False) -> Caller:
        """The Caller of a request to a route: who holds a key, or a member who is signed in, who is never remembered.

        `remembered` as above; raises as `caller` does.
        """
        tenant = connection.headers.get(TENANT_HEADER)
        if tenant is None or "authorization" in connection.headers:
            return await self.caller(connection, remembered=remembered)
        member = await member_caller(connection, tenant)
        if member is None:
            raise Unauthenticated(identity.REFUSAL)
        return replace(member, address=site_of_client(connection))

    async def session(self, connection: AnyConnection, secret: str) -> PersonSession | None:
        """Who is signed in with this secret, or None. One that does not hold is a failure of its address, as a key is.

        Raises TooManyRequests, or Unavailable.
        """
        try:
            return await self._looked_up(secret, site_of_client(connection), lambda: self._session(secret))
        except Unauthenticated:
            return None

    async def while_it_holds(self, connection: AnyConnection, parts: AsyncIterator[T]) -> AsyncIterator[T]:
        """The parts of what takes long, before each of which the credential is asked for anew.

        Raises Unauthenticated once it is revoked, or has ended, or its tenant is suspended.
        """
        async for part in parts:
            await self.caller_of_route(connection)
            yield part

    async def _looked_up(self, secret: str, site: str, ask: Callable[[], Awaitable[T]]) -> T:
        """What a secret stands for; who makes secrets up does not ask the database."""
        if self.failed is None:
            return await ask()
        key = hash_secret(secret, self.pepper)
        if self.failed.is_void(key):
            raise Unauthenticated(identity.REFUSAL)
        await self.failed.require_within_rate(key, site)
        try:
            found = await ask()
        except Unauthenticated as error:
            await self.failed.note_failed(
                key, site, void=not isinstance(error, TenantSuspended | WrongResource | NotTrusted)
            )
            raise
        self.failed.note_held(key)
        return found

    async def _session(self, secret: str) -> PersonSession:
        session = await people.session_of(self.db, secret, pepper=self.pepper)
        if session is None:
            raise Unauthenticated(identity.REFUSAL)
        return session

    async def _ask(self, secret: str, resource: str | None) -> Caller:
        if kind_of(secret) == ACCESS:
            return await grants.authenticate(self.db, secret, resource=resource, pepper=self.pepper)
        return await identity.authenticate(
            self.db, secret, pepper=self.pepper, note_use=self.note_use, beside=self.beside
        )


def _secret(headers: Headers) -> str:
    """What could be a key or a token; what could not costs no look-up and is no failure of its address."""
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    secret = credential.strip()
    could_hold = kind_of(secret) in (*KIND_SCOPES, ACCESS) or looks_like_token(secret)
    if scheme.lower() != "bearer" or not could_hold:
        raise Unauthenticated(identity.REFUSAL)
    return secret
