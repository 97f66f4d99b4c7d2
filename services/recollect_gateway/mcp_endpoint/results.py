"""Replies as the protocol tells them: the structured content, and beside it the text."""

from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, Protocol, TypeVar

import msgspec
from mcp_types import CallToolResult, InputRequiredResult

from recollect.platform.computing import compute, in_one_slice
from recollect_gateway.bodies import LARGE
from recollect_gateway.mcp_endpoint.encoded_parts import EncodedParts
from recollect_gateway.mcp_endpoint.pages import fitted
from recollect_gateway.mcp_endpoint.request import McpRequest
from recollect_gateway.mcp_endpoint.tool import Listing, Reply, ToolSpec, require_within

SPACED = "memory"
"""The toolset whose texts are indented, as the official memory server's: white space is a third of such a text."""

MAX_ITEMS_ON_LOOP = 500
"""Rows, and what comes with them, that the event loop makes a reply of."""

T = TypeVar("T", covariant=True)

Answer = Reply | Listing | CallToolResult | InputRequiredResult
"""What a call is answered: a reply, one that is to fit a page, a result that is told as it is, or a question back."""


async def render_result(
    request: McpRequest, tool: ToolSpec, answer: Answer, max_bytes: int | None = None
) -> CallToolResult | InputRequiredResult | dict[str, Any]:
    """What a tool answers as the protocol tells it; a large reply is made beside the event loop. Raises TooLarge.

    What a reply says is encoded here, once: the SDK is handed stand-ins for it. It drops what a revision does not have.
    """
    if not isinstance(answer, Reply | Listing):
        return answer
    render = partial(_rendered, request.parts, answer, spaced=SPACED in tool.toolsets, max_bytes=max_bytes)
    items = answer.rows + answer.related_items if isinstance(answer, Listing) else 0
    return await _beside_loop_if_large(request, render, items)


async def render_document(request: McpRequest, structured: msgspec.Struct, max_bytes: int) -> str:
    """A text of indented JSON; a large one is made beside the event loop. Raises TooLarge."""

    def render(most: float = inf) -> str:
        encoded = _encoded(structured, most)
        require_within(encoded, max_bytes)
        return request.parts.text(msgspec.json.encode(msgspec.json.format(encoded, indent=2).decode()))

    return await _beside_loop_if_large(request, render)


class _Render(Protocol[T]):
    """Makes an answer; raises _LargeError once what it encodes takes more than `most` bytes."""

    def __call__(self, most: float = inf) -> T: ...


class _LargeError(Exception):
    """An answer is too large to be made on the event loop."""


async def _beside_loop_if_large(request: McpRequest, render: _Render[T], items: int = 0) -> T:
    """What is rendered of so many items, on the event loop unless that holds it for long."""
    if items <= MAX_ITEMS_ON_LOOP:
        with suppress(_LargeError):
            return render(LARGE)
    return await compute(request.caller.tenant_id, in_one_slice(render), seconds=inf, advice="")


def _encoded(structured: Any, most: float) -> bytes:
    encoded = msgspec.json.encode(structured)
    if len(encoded) > most:
        raise _LargeError
    return encoded


def _rendered(
    parts: EncodedParts, answer: Reply | Listing, most: float = inf, *, spaced: bool, max_bytes: int | None
) -> dict[str, Any]:
    def size(reply: Reply) -> int:
        """Bytes of the text, or of the structured content where that takes more: most clients pass on one of them."""
        encoded = _encoded(reply.structured, most)
        return max(len(encoded), sum(len(text.encode()) for text in _texts(reply, encoded, spaced)))

    reply = fitted(answer, size) if isinstance(answer, Listing) else answer
    encoded = _encoded(reply.structured, most)
    require_within(encoded, max_bytes)
    texts = [_encoded(text, most) for text in _texts(reply, encoded, spaced)]
    content = [{"type": "text", "text": parts.text(text)} for text in texts]
    return {
        "content": content,
        "structuredContent": parts.object(encoded),
        "isError": False,
        "resultType": "complete",
    }


def dumped(result: CallToolResult | InputRequiredResult) -> dict[str, Any]:
    """A result as the SDK dumps it."""
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def _texts(reply: Reply, encoded: bytes, spaced: bool) -> list[str]:
    text = _text(reply, encoded, spaced) if reply.text is None else reply.text
    return [text] if reply.note is None else [text, reply.note]


def _text(reply: Reply, encoded: bytes, spaced: bool) -> str:
    """The structured content as JSON, for clients that show their model no other."""
    told = reply.structured
    shown = msgspec.json.encode(getattr(told, told.__struct_fields__[0])) if reply.bare else encoded
    return (msgspec.json.format(shown, indent=2) if spaced else shown).decode()
