"""Replies as the protocol tells them: the structured content, and beside it the text."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from typing import Any

import msgspec
from mcp_types import CallToolResult, InputRequiredResult, TextContent

from recollect.errors import Unavailable
from recollect.platform.computing import compute, in_one_slice
from recollect_gateway.bodies import LARGE
from recollect_gateway.mcp_endpoint.pages import fitted
from recollect_gateway.mcp_endpoint.request import McpRequest
from recollect_gateway.mcp_endpoint.tool import Listing, Reply, ToolSpec, bounded

SPACED = "memory"
"""The toolset whose texts are indented, as the official memory server's: white space is a third of such a text."""

MAX_ITEMS_ON_LOOP = 500
"""Rows, and what comes with them, that the event loop makes a reply of."""

Answer = Reply | Listing | CallToolResult | InputRequiredResult
"""What a call is answered: a reply, one that is to fit a page, a result that is told as it is, or a question back."""


async def render_result(
    request: McpRequest, tool: ToolSpec, answer: Answer, max_bytes: int | None = None
) -> CallToolResult | InputRequiredResult | dict[str, Any]:
    """What a tool answers as the protocol tells it; a large reply is made beside the event loop. Raises TooLarge.

    A reply is given as its result dumps: the SDK would dump it on the loop, before it validates it there.
    """
    spaced = SPACED in tool.toolsets
    if isinstance(answer, Listing):
        answer = await _fitted(request, answer, spaced)
    if not isinstance(answer, Reply):
        return answer
    encoded = bounded(answer.structured, max_bytes)
    if len(encoded) < LARGE or isinstance(request.sender, Unavailable):
        return _rendered(answer, encoded, spaced)
    slices = in_one_slice(partial(_rendered, answer, encoded, spaced))
    return await compute(request.caller.tenant_id, slices, seconds=inf, advice="")


async def _fitted(request: McpRequest, listing: Listing, spaced: bool) -> Reply:
    """The rows that fit a page; beside the event loop where they come with much, or one of them is large."""
    size = partial(_size, spaced=spaced)
    if listing.rows + listing.related_items <= MAX_ITEMS_ON_LOOP:
        with suppress(_LargeError):
            return fitted(listing, partial(_small_size, size))
    slices = in_one_slice(partial(fitted, listing, size))
    return await compute(request.caller.tenant_id, slices, seconds=inf, advice="")


class _LargeError(Exception):
    """A reply is too large to be measured again and again on the event loop."""


def _small_size(size: Callable[[Reply], int], reply: Reply) -> int:
    if (found := size(reply)) >= LARGE:
        raise _LargeError
    return found


def _size(reply: Reply, *, spaced: bool) -> int:
    """Bytes of the text, or of the structured content where that takes more: most clients pass on one of them."""
    encoded = msgspec.json.encode(reply.structured)
    return max(len(encoded), sum(len(text.encode()) for text in _texts(reply, encoded, spaced)))


def _rendered(reply: Reply, encoded: bytes, spaced: bool) -> dict[str, Any]:
    result = CallToolResult(
        content=[TextContent(type="text", text=said) for said in _texts(reply, encoded, spaced)],
        structured_content=msgspec.to_builtins(reply.structured),
    )
    return dumped(result)


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
