"""Who asks the operator API: by a key in the Authorization header, or as the owner, within their own process."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from recollect.accounts.identity.model import hash_secret, kind_of
from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.operator_keys.model import KIND
from recollect.errors import Unauthenticated
from recollect_gateway.addresses import site_of_client
from recollect_gateway.failures import FailedKeys

if TYPE_CHECKING:
    from recollect_operator.database import OperatorDatabase

AnyConnection = ASGIConnection[Any, Any, Any, Any]

NOBODYS = UUID(int=0)


@dataclass(frozen=True, slots=True)
class OperatorIdentity:
    """An operator at work: `actor` as the log tells it, and the client's address. Of no tenant, and so of this id."""

    actor: str
    address: str | None = None
    tenant_id: UUID = NOBODYS


Identify = Callable[[AnyConnection], Awaitable[OperatorIdentity]]
"""Tells who asks; raises Unauthenticated, TooManyRequests or Unavailable."""


async def owner(_: AnyConnection) -> OperatorIdentity:
    """Whoever runs the application within their own process, on the owner's connection: there is nobody else."""
    return OperatorIdentity("owner")


@dataclass(frozen=True, slots=True)
class KeyHolders:
    """Turns `Authorization: Bearer rcl_operator_…` into who asks; keys that do not hold are throttled by address."""

    db: "OperatorDatabase"
    pepper: bytes
    failed: FailedKeys

    async def __call__(self, connection: AnyConnection) -> OperatorIdentity:
        """Who holds the key. Every refusal looks alike, that of a tenant's key, too."""
        secret, site = _secret(connection), site_of_client(connection)
        key = hash_secret(secret, self.pepper)
        if self.failed.is_void(key):
            raise Unauthenticated(operator_keys.REFUSAL)
        await self.failed.require_within_rate(key, site)
        try:
            async with self.db.session() as session:
                actor = await operator_keys.authenticate(session, secret, pepper=self.pepper)
        except Unauthenticated:
            await self.failed.note_failed(key, site, void=True)
            raise
        self.failed.note_valid(key)
        return OperatorIdentity(actor, site)


class IdentityMiddleware(ASGIMiddleware):
    """Puts who asks at `request.user`, before anything else of the request is looked at."""

    scopes = (ScopeType.HTTP,)

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Raises as `Identify` does."""
        identify: Identify = scope["litestar_app"].state.identify
        scope["user"], scope["auth"] = await identify(ASGIConnection(scope)), None
        await next_app(scope, receive, send)


def _secret(connection: AnyConnection) -> str:
    """What could be an operator's key; what could not costs no look-up."""
    scheme, _, credential = connection.headers.get("authorization", "").partition(" ")
    secret = credential.strip()
    if scheme.lower() != "bearer" or kind_of(secret) != KIND:
        raise Unauthenticated(operator_keys.REFUSAL)
    return secret
