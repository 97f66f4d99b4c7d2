"""The identity of an operator: by a key in the Authorization header, or as the owner, within the owner's process."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from recollect.accounts.identity.model import hash_secret, kind_of
from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.operator_keys.model import KIND
from recollect.errors import Unauthenticated
from recollect_http.client_addresses import site_of_client
from recollect_http.failed_keys import FailedKeys
from recollect_http.unknown_keys import UnknownKeys
from recollect_operator.database import OperatorDatabase
from recollect_operator.operator_identity import OperatorIdentity

AnyConnection = ASGIConnection[Any, Any, Any, Any]

Identify = Callable[[AnyConnection], Awaitable[OperatorIdentity]]
"""Identifies the operator of a request; raises Unauthenticated, TooManyRequests or Unavailable."""


async def owner(_: AnyConnection) -> OperatorIdentity:
    """The owner, who runs the application within their own process and with the owner's connection."""
    return OperatorIdentity("owner")


@dataclass(frozen=True, slots=True)
class KeyIdentities:
    """Turns `Authorization: Bearer rcl_operator_…` into an operator; keys that do not hold are throttled by address."""

    db: OperatorDatabase
    pepper: bytes
    failed_keys: FailedKeys
    unknown_keys: UnknownKeys = field(default_factory=UnknownKeys)

    async def __call__(self, connection: AnyConnection) -> OperatorIdentity:
        """The operator who holds the key. All refusals look alike, also of a tenant's key."""
        secret, site = _secret(connection), site_of_client(connection)
        key = hash_secret(secret, self.pepper)
        if self.failed_keys.is_known_invalid(key):
            raise Unauthenticated(operator_keys.REFUSAL)
        await self.failed_keys.require_within_rate(key, site)
        try:
            async with self.db.session() as session:
                with self.unknown_keys.watched():
                    actor = await operator_keys.authenticate(session, secret, pepper=self.pepper)
        except Unauthenticated:
            await self.failed_keys.note_failed(key, site, void=True)
            raise
        self.failed_keys.note_valid(key)
        return OperatorIdentity(actor, site)


class IdentityMiddleware(ASGIMiddleware):
    """Puts the operator at `request.user`, before anything else of the request is read."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Raises as `Identify` does."""
        identify: Identify = scope["litestar_app"].state.identify
        scope["user"], scope["auth"] = await identify(ASGIConnection(scope)), None
        await next_app(scope, receive, send)


def _secret(connection: AnyConnection) -> str:
    """The secret of a request, if it can be an operator's key; any other is refused without a look-up."""
    scheme, _, credential = connection.headers.get("authorization", "").partition(" ")
    secret = credential.strip()
    if scheme.lower() != "bearer" or kind_of(secret) != KIND:
        raise Unauthenticated(operator_keys.REFUSAL)
    return secret
