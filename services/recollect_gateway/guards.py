"""Guards of the management API: who calls, and whether they may."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult

from recollect.caller import Caller, Scope
from recollect_gateway.credentials import Authenticator


class CallerMiddleware(AbstractAuthenticationMiddleware):
    """Puts the Caller of each request at `request.user`."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """Resolve the credential; raises Unauthenticated."""
        authenticator: Authenticator = connection.app.state.authenticator
        return AuthenticationResult(user=await authenticator.caller(connection.headers), auth=None)


def requires_admin(connection: ASGIConnection[Any, Caller, Any, Any], _: BaseRouteHandler) -> None:
    """Only credentials with the scope `tenant:admin`."""
    connection.user.require(Scope.TENANT_ADMIN)
