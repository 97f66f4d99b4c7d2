"""The identity of an operator: by a key in the Authorization header, by a session of the pages (`pages.access`), or as
the owner, within the owner's process."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from recollect.accounts.identity.model import hash_secret, kind_of
from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.operator_keys.model import KIND, SUBJECT, FoundKey, SessionKey
from recollect.errors import Unauthenticated
from recollect.postgres.operator_sessions import Operator
from recollect_http.access_log import note_operator
from recollect_http.client_addresses import site_of_client
from recollect_http.failed_keys import FailedKeys
from recollect_http.unknown_keys import UnknownKeys
from recollect_operator.database import OperatorDatabase
from recollect_operator.operator_identity import OperatorIdentity

T = TypeVar("T")
AnyConnection = ASGIConnection[Any, Any, Any, Any]

Identify = Callable[[AnyConnection], Awaitable[OperatorIdentity]]
"""Identifies the operator of a request; raises Unauthenticated, TooManyRequests or Unavailable."""


async def owner(_: AnyConnection) -> OperatorIdentity:
    """The owner, who runs the application within their own process and with the owner's connection."""
    return OperatorIdentity("owner")


@dataclass(frozen=True, slots=True)
class KeyIdentities:
    """Turns `Authorization: Bearer rcl_operator_…` into an operator, and sessions of the pages into their keys."""

    db: OperatorDatabase
    pepper: bytes
    failed_keys: FailedKeys
    unknown_keys: UnknownKeys = field(default_factory=UnknownKeys)

    async def __call__(self, connection: AnyConnection) -> OperatorIdentity:
        """The operator who holds the key. All refusals look alike, also of a tenant's key."""
        site = site_of_client(connection)
        key = await self.find_key(_secret(connection), site)
        return OperatorIdentity(f"{SUBJECT}{key.id}", site)

    async def find_key(self, secret: str, site: str) -> FoundKey:
        """The valid key with this secret, which comes from this address. All refusals look alike."""

        async def look_up(session: Operator) -> FoundKey:
            with self.unknown_keys.watched():
                return await operator_keys.find_valid_key(session, secret, pepper=self.pepper)

        return await self._find(secret, site, look_up)

    async def find_session(self, secret: str, site: str) -> SessionKey:
        """The key of the valid session with this secret. Raises as `find_key` does."""

        async def look_up(session: Operator) -> SessionKey:
            found = await operator_keys.find_session(session, secret, pepper=self.pepper)
            if found is None:
                raise Unauthenticated(operator_keys.REFUSAL)
            return found

        return await self._find(secret, site, look_up)

    async def _find(self, secret: str, site: str, look_up: Callable[[Operator], Awaitable[T]]) -> T:
        """What belongs to a secret. Secrets that do not hold are throttled by address."""
        hashed = hash_secret(secret, self.pepper)
        if self.failed_keys.is_known_invalid(hashed):
            raise Unauthenticated(operator_keys.REFUSAL)
        await self.failed_keys.require_within_rate(hashed, site)
        try:
            async with self.db.session() as session:
                found = await look_up(session)
        except Unauthenticated:
            await self.failed_keys.note_failed(hashed, site, void=True)
            raise
        self.failed_keys.note_valid(hashed)
        return found


class IdentityMiddleware(ASGIMiddleware):
    """Puts the operator at `request.user`, before anything else of the request is read."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Raises as `Identify` does."""
        identify: Identify = scope["litestar_app"].state.identify
        operator = await identify(ASGIConnection(scope))
        note_operator(scope, operator.actor)
        scope["user"], scope["auth"] = operator, None
        await next_app(scope, receive, send)


def _secret(connection: AnyConnection) -> str:
    """The secret of a request, if it can be an operator's key; any other is refused without a look-up."""
    scheme, _, credential = connection.headers.get("authorization", "").partition(" ")
    secret = credential.strip()
    if scheme.lower() != "bearer" or kind_of(secret) != KIND:
        raise Unauthenticated(operator_keys.REFUSAL)
    return secret
