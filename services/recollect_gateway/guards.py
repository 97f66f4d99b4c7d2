"""Guards of the management API: who calls, whether they may, and whether what they send can be kept."""

from typing import Any

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult

from recollect.caller import Caller, Scope
from recollect.errors import InvalidInput
from recollect_gateway.credentials import Authenticator
from recollect_gateway.mcp_endpoint.schema import check_text


class CallerMiddleware(AbstractAuthenticationMiddleware):
    """Puts the Caller of each request at `request.user`."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """Resolve the credential; raises Unauthenticated."""
        authenticator: Authenticator = connection.app.state.authenticator
        return AuthenticationResult(user=await authenticator.caller(connection.headers), auth=None)


def requires_admin(connection: ASGIConnection[Any, Caller, Any, Any], _: BaseRouteHandler) -> None:
    """Only credentials with the scope `tenant:admin`."""
    connection.user.require(Scope.TENANT_ADMIN)


async def sound_body(request: Request[Any, Any, Any]) -> None:
    """Refuse a body that is no JSON, or whose text PostgreSQL cannot hold, before it becomes a type."""
    try:
        body = msgspec.json.decode(await request.body())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidInput("The body is not JSON, or is nested too deep") from None
    check_text(body)
