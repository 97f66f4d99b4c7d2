"""The state that a client is sent with a question, and sends back with its answers.

A client may send back anything. So the state is sealed, expires, and is valid for one caller, one method, one name and
the same arguments. Any other state is refused before a handler runs.
"""

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.request import Context, request_of

STATE_SECONDS = 600.0
"""How long a client may take to answer."""

AUDIENCE = "recollect"


def sealed_state(settings: Settings) -> RequestStateBoundary:
    """Middleware that seals each state sent out, and opens it on any gateway that has the same secret."""
    secret = settings.pepper
    key = HKDF(hashes.SHA256(), length=32, salt=None, info=b"recollect request state").derive(secret)
    security = RequestStateSecurity(keys=[key], ttl=STATE_SECONDS, bind_principal=_principal)
    return RequestStateBoundary(security, default_audience=AUDIENCE)


def _principal(context: Context) -> str:
    """The caller to whom the state belongs; raises Unavailable, which refuses the state, if the caller is unknown."""
    caller = request_of(context).caller
    return f"{caller.tenant_id}/{caller.subject}"
