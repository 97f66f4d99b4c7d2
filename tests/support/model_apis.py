"""The subset of JSON Schema that the APIs of Gemini, OpenAI and Anthropic all take for the arguments of a tool.

Written from what they document: Gemini's `Schema` (one type, `items` in each array, `enum` of texts, no format of a
text but `date-time` and `enum`), OpenAI's structured outputs and Anthropic's strict tools (no composition but `anyOf`),
and the names that all three take. An API refuses the whole request for one tool whose schema is outside of it.
"""

import re
from collections.abc import Iterator
from typing import Any

TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object"})
KEYWORDS = frozenset({"type", "description", "enum", "format", "items", "properties", "required"})
TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
ARGUMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
MAX_DESCRIPTION = 1_024
MAX_LEVELS = 5


def faults_of_tool(tool: dict[str, Any]) -> Iterator[str]:
    """What an API would not take of a listed tool."""
    if not TOOL_NAME.fullmatch(tool["name"]):
        yield "name"
    if len(tool["description"]) > MAX_DESCRIPTION:
        yield "description"
    if not tool["inputSchema"].get("properties"):
        yield "no arguments"
    yield from faults(tool["inputSchema"], "input")
    yield from faults(tool["outputSchema"], "output")


def faults(schema: dict[str, Any], path: str, level: int = 0, *, more: frozenset[str] = frozenset()) -> Iterator[str]:
    """What an API would not take of a schema, each with its path. `more`: keywords of one API."""
    type_ = schema.get("type")
    if type_ not in TYPES:
        yield f"{path}: type {type_}"
    yield from (f"{path}: {keyword}" for keyword in schema.keys() - KEYWORDS - more)
    if level > MAX_LEVELS:
        yield f"{path}: {level} levels"
    if "enum" in schema and not (type_ == "string" and all(isinstance(v, str) and v for v in schema["enum"])):
        yield f"{path}: enum {schema['enum']}"
    if "format" in schema and (type_, schema["format"]) != ("string", "date-time"):
        yield f"{path}: format {schema['format']}"
    yield from _faults_of_parts(schema, path, level, more)


def _faults_of_parts(schema: dict[str, Any], path: str, level: int, more: frozenset[str]) -> Iterator[str]:
    type_, properties = schema.get("type"), schema.get("properties", {})
    if ("items" in schema) is not (type_ == "array"):
        yield f"{path}: items of type {type_}"
    if type_ != "object" and schema.keys() & {"properties", "required"}:
        yield f"{path}: properties of type {type_}"
    yield from (f"{path}: required {name}" for name in set(schema.get("required", ())) - set(properties))
    for name, part in properties.items():
        if not ARGUMENT_NAME.fullmatch(name):
            yield f"{path}: name {name}"
        yield from faults(part, f"{path}.{name}", level + 1, more=more)
    if "items" in schema:
        yield from faults(schema["items"], f"{path}[]", level + 1, more=more)
