"""Renders replies as results of the protocol: structured content, and text beside it."""

from contextlib import suppress
from functools import partial
from math import inf
from typing import Any, Protocol, TypeVar

import msgspec
from mcp_types import CallToolResult, InputRequiredResult

from recollect.fairness.computing import compute, in_one_slice
from recollect_gateway.mcp_endpoint.encoded_parts import EncodedParts
from recollect_gateway.mcp_endpoint.pages import fit_page
from recollect_gateway.mcp_endpoint.request import McpRequest
from recollect_gateway.mcp_endpoint.tool import PagedReply, Reply, ToolSpec, require_within
from recollect_http.requests.bodies import LARGE

MAX_ITEMS_ON_LOOP = 500
"""The maximum number of rows, with their related items, of a reply that is rendered on the event loop."""

T = TypeVar("T", covariant=True)

Answer = Reply | PagedReply | CallToolResult | InputRequiredResult
"""The answer to a call: a reply, one that must fit a page, a finished result, or a question to the client."""


async def render_result(
    request: McpRequest, tool: ToolSpec, answer: Answer, max_bytes: int | None = None
) -> CallToolResult | InputRequiredResult | dict[str, Any]:
    """Render a tool's answer as a result of the protocol, beside the event loop if it is large. Raises TooLarge.

    A reply's content is encoded here, once: the SDK is handed stand-ins for it. The SDK drops fields that the revision
    in use does not have.
    """
    if not isinstance(answer, Reply | PagedReply):
        return answer
    render = partial(_render_reply, request.parts, answer, max_bytes=max_bytes)
    items = answer.row_count + answer.related_items if isinstance(answer, PagedReply) else 0
    return await _in_thread_if_large(request, render, items)


async def render_document(request: McpRequest, structured: msgspec.Struct, max_bytes: int) -> str:
    """Render a struct as a text of indented JSON, beside the event loop if it is large. Raises TooLarge."""

    def render(loop_bytes: float = inf) -> str:
        encoded = _encode(structured, loop_bytes)
        require_within(encoded, max_bytes)
        return request.parts.text(msgspec.json.encode(msgspec.json.format(encoded, indent=2).decode()))

    return await _in_thread_if_large(request, render)


class _Render(Protocol[T]):
    """Renders an answer; raises _LargeError as soon as it encodes something of more than `loop_bytes` bytes."""

    def __call__(self, loop_bytes: float = inf) -> T: ...


class _LargeError(Exception):
    """An answer is too large to be rendered on the event loop."""


async def _in_thread_if_large(request: McpRequest, render: _Render[T], items: int = 0) -> T:
    """Render an answer of `items` items on the event loop, or beside it where that would hold the loop for long."""
    if items <= MAX_ITEMS_ON_LOOP:
        with suppress(_LargeError):
            return render(LARGE)
    return await compute(request.caller.tenant_id, in_one_slice(render), seconds=inf, advice="")


def _encode(value: Any, loop_bytes: float) -> bytes:
    encoded = msgspec.json.encode(value)
    if len(encoded) > loop_bytes:
        raise _LargeError
    return encoded


def _render_reply(
    parts: EncodedParts, answer: Reply | PagedReply, loop_bytes: float = inf, *, max_bytes: int | None
) -> dict[str, Any]:
    def size(reply: Reply) -> int:
        """Bytes of the text or of the structured content, the larger: most clients pass on only one of them."""
        encoded = _encode(reply.structured, loop_bytes)
        return max(len(encoded), sum(len(text.encode()) for text in _texts(reply, encoded)))

    reply = fit_page(answer, size) if isinstance(answer, PagedReply) else answer
    encoded = _encode(reply.structured, loop_bytes)
    require_within(encoded, max_bytes)
    texts = [_encode(text, loop_bytes) for text in _texts(reply, encoded)]
    content = [{"type": "text", "text": parts.text(text)} for text in texts]
    return {
        "content": content,
        "structuredContent": parts.object(encoded),
        "isError": False,
        "resultType": "complete",
    }


def dump_result(result: CallToolResult | InputRequiredResult) -> dict[str, Any]:
    """The result as the JSON object that the SDK sends."""
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def _texts(reply: Reply, encoded: bytes) -> list[str]:
    text = _text(reply, encoded) if reply.text is None else reply.text
    return [text] if reply.note is None else [text, reply.note]


def _text(reply: Reply, encoded: bytes) -> str:
    """The structured content as JSON, for clients that show their model the text only.

    It is not indented, as the official memory server's texts are: a third of them is white space.
    """
    structured = reply.structured
    text = msgspec.json.encode(getattr(structured, structured.__struct_fields__[0])) if reply.bare else encoded
    return text.decode()
