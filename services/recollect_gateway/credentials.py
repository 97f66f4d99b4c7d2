"""Credentials: the one place where a request's Authorization header becomes a Caller."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, TypeVar

from litestar.connection import ASGIConnection
from litestar.datastructures import Headers

from recollect.accounts.identity import service as identity
from recollect.accounts.identity.model import KIND_SCOPES, hash_secret, kind_of
from recollect.accounts.identity.service import NoteUse, TenantSuspended
from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import ACCESS
from recollect.accounts.oauth.grants.service import WrongResource
from recollect.caller import Caller
from recollect.errors import Unauthenticated
from recollect.platform.db import Database
from recollect_gateway.addresses import site_of
from recollect_gateway.failures import FailedKeys

T = TypeVar("T")


AnyConnection = ASGIConnection[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Turns `Authorization: Bearer rcl_…`, a key or an access token, into a Caller. `failed` None throttles nobody."""

    db: Database
    pepper: bytes
    note_use: NoteUse | None = None
    failed: FailedKeys | None = None

    async def caller(
        self, connection: AnyConnection, tenant: str | None = None, *, resource: str | None = None
    ) -> Caller:
        """The Caller of a request, who must be of `tenant` where the address names one.

        An access token must be for `resource`; where that is None, as beside MCP, none holds.
        Raises Unauthenticated, alike for every reason, TooManyRequests, or Unavailable.
        """
        caller = await self._holder(_secret(connection.headers), _site(connection), resource)
        if tenant not in (None, caller.tenant):
            raise Unauthenticated(identity.REFUSAL)
        return caller

    async def while_it_holds(self, connection: AnyConnection, parts: AsyncIterator[T]) -> AsyncIterator[T]:
        """The parts of what takes long, before each of which the credential is asked for anew.

        Raises Unauthenticated once it is revoked, or has ended, or its tenant is suspended.
        """
        async for part in parts:
            await self.caller(connection)
            yield part

    async def _holder(self, secret: str, site: str, resource: str | None) -> Caller:
        if self.failed is None:
            return await self._ask(secret, resource)
        key = hash_secret(secret, self.pepper)
        if self.failed.is_void(key):
            raise Unauthenticated(identity.REFUSAL)
        await self.failed.require_within_rate(key, site)
        try:
            caller = await self._ask(secret, resource)
        except Unauthenticated as error:
            await self.failed.note_failed(key, site, void=not isinstance(error, TenantSuspended | WrongResource))
            raise
        self.failed.note_held(key)
        return caller

    async def _ask(self, secret: str, resource: str | None) -> Caller:
        if kind_of(secret) == ACCESS:
            return await grants.authenticate(self.db, secret, resource=resource, pepper=self.pepper)
        return await identity.authenticate(self.db, secret, pepper=self.pepper, note_use=self.note_use)


def _secret(headers: Headers) -> str:
    """What could be a key or a token; what could not costs no look-up and is no failure of its address."""
    scheme, _, credential = headers.get("authorization", "").partition(" ")
    secret = credential.strip()
    if scheme.lower() != "bearer" or kind_of(secret) not in (*KIND_SCOPES, ACCESS):
        raise Unauthenticated(identity.REFUSAL)
    return secret


def _site(connection: AnyConnection) -> str:
    return site_of(connection.client.host if connection.client else None)
