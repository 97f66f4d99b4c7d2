"""Requests of several rounds: a client is asked back, and sends its request again with the answers and our state.

At 2026-07-28 that is how a server asks anything of a client.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import ClientCapabilities, InputResponseRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a request: what its client can be asked, what it answered, and the state that it was handed.

    `state` is ours: it was handed to this caller for this request, and has not expired.
    """

    capabilities: ClientCapabilities
    answers: Mapping[str, Any]
    state: str | None


def round_of(context: ServerRequestContext[Any, Any], params: InputResponseRequestParams) -> Round | None:
    """The round that is answered; None at a revision where nobody can be asked back."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return None
    capabilities = context.session.client_capabilities or ClientCapabilities()
    return Round(capabilities, params.input_responses or {}, params.request_state)
