"""Decides which unknown arguments of a call are ignored: some clients add their own to those of the model.

Arguments that a model meant for the tool are refused: those with a name like one of the tool's own, at any depth, and,
for tools to which a misspelt argument would do harm, all others. The answer names the arguments that were ignored.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from mcp_types import CallToolResult, InputRequiredResult, TextContent
from rapidfuzz.fuzz import ratio

from recollect.errors import InvalidInput
from recollect_gateway.mcp_endpoint.schema import json_schema
from recollect_gateway.mcp_endpoint.tool import ToolSpec
from recollect_http.requests.parsing import MAX_NAME, check_text

CLIENT_ARGUMENTS = frozenset({"toolCallId", "sessionId", "action", "chatInput"})
"""Arguments that n8n adds to the calls of its agents."""

WHOSE_MEMORY = frozenset({"tenant", "graph"})
"""Names that say whose memory is meant. They are refused like misspelt ones: a call must not use another memory than it
names."""

MAX_IGNORED = 20
"""The maximum number of unknown arguments of one call that are ignored."""

SIMILAR = 75
"""The similarity, in percent, from which on a name counts as misspelt."""

SHORTEST = 4
"""The minimum length of a name that is looked for inside other names, in letters."""


def ignored_arguments(tool: ToolSpec, arguments: Mapping[str, Any]) -> list[str]:
    """The names of the arguments that are ignored, in their order; those that remain unknown are refused."""
    known = {field.encode_name for field in msgspec.structs.fields(tool.arguments)}
    unknown = [name for name in arguments if name not in known]
    if len(unknown) > MAX_IGNORED:
        return []
    return [name for name in unknown if _is_ignored(tool, name)]


def name_ignored(result: CallToolResult | InputRequiredResult | dict[str, Any], ignored: Sequence[str]) -> None:
    """Add a text to a result that names the ignored arguments; questions and tasks stay as they are."""
    text = f"Ignored, since the tool has no such argument: {', '.join(ignored)}."
    if ignored and isinstance(result, CallToolResult):
        result.content.append(TextContent(type="text", text=text))
    elif ignored and isinstance(result, dict) and "content" in result:
        result["content"].append({"type": "text", "text": text})


def _is_ignored(tool: ToolSpec, name: str) -> bool:
    if name in CLIENT_ARGUMENTS:
        return True
    own = _names(tool.arguments)
    if tool.destructive or "dryrun" in own:
        return False
    return _is_plain(name) and not any(_resembles(_folded(name), other) for other in own | WHOSE_MEMORY)


def _is_plain(name: str) -> bool:
    """Whether a name is short and harmless enough for an answer to repeat it."""
    try:
        check_text(name)
    except InvalidInput:
        return False
    return len(name) <= MAX_NAME


def _resembles(name: str, other: str) -> bool:
    shorter, longer = sorted((name, other), key=len)
    return ratio(name, other) >= SIMILAR or (len(shorter) >= SHORTEST and shorter in longer)


@cache
def _names(type_: type[msgspec.Struct]) -> frozenset[str]:
    """The names of a tool's arguments, at any depth, folded."""
    return frozenset(_folded(name) for name in _named(json_schema(type_)))


def _named(schema: Any) -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        yield name
        yield from _named(part)
    if "items" in schema:
        yield from _named(schema["items"])


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
