"""The state that a client is handed when it is asked back, and hands back with its answers.

What a client hands back is whatever it likes: so the state is sealed, expires, and holds for one caller, one method,
one name and the same arguments. Anything else is refused before a handler runs.
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
    """What seals each state that goes out, and opens each that comes back: on any gateway with the same secret."""
    secret = settings.pepper
    key = HKDF(hashes.SHA256(), length=32, salt=None, info=b"recollect request state").derive(secret)
    security = RequestStateSecurity(keys=[key], ttl=STATE_SECONDS, bind_principal=_principal)
    return RequestStateBoundary(security, default_audience=AUDIENCE)


def _principal(context: Context) -> str:
    """Whose state it is; raises Unavailable where nobody can tell, and the state is refused."""
    caller = request_of(context).caller
    return f"{caller.tenant_id}/{caller.subject}"
