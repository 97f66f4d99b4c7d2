"""Requests of several rounds: the server asks a question, and the client sends the request again with the answer.

The second request also has the state that came with the question. At 2026-07-28 a server asks its client in this way
only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp_types import ClientCapabilities, InputResponseRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS


@dataclass(frozen=True, slots=True)
class ElicitationRound:
    """One round of a request: the client's capabilities, its answers, and the state that it sent back.

    `state` is ours: it was sent to this caller for this request, and has not expired.
    """

    capabilities: ClientCapabilities
    answers: Mapping[str, Any]
    state: str | None


def round_of(context: ServerRequestContext[Any, Any], params: InputResponseRequestParams) -> ElicitationRound | None:
    """The round of a request; None at a revision that has no rounds."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return None
    capabilities = context.session.client_capabilities or ClientCapabilities()
    return ElicitationRound(capabilities, params.input_responses or {}, params.request_state)
