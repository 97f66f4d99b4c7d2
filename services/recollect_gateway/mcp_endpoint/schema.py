"""msgspec types as the JSON Schemas that MCP carries."""

import re
from datetime import datetime
from math import isfinite
from typing import Any, TypeVar

import msgspec

from recollect.errors import InvalidInput
from recollect.times import in_plain_words, storable
from recollect_gateway.shapes import plain_pattern

T = TypeVar("T", bound=msgspec.Struct)

MAX_DEPTH = 32
"""Nesting of arguments at most."""

_AT = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_MISSING = re.compile(r"^Object missing required field `(?P<field>[^`]+)`$")
_UNKNOWN = re.compile(r"^Object contains unknown field `(?P<field>[^`]+)`$")


BOUNDS = frozenset(
    {
        *("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "pattern"),
        *("additionalProperties", "default"),
    }
)
"""What a terse schema leaves unsaid. It holds all the same: a call that breaks it is told how."""


def json_schema(type_: type[msgspec.Struct], *, terse: bool = False) -> dict[str, Any]:
    """The JSON Schema of a struct, self-contained: references resolved, titles and null defaults left out.

    Null is still accepted where a field may be left out: models send it. `terse` leaves bounds out as well: every token
    of a tool's schema is paid for in every conversation.
    """
    (schema,), components = msgspec.json.schema_components([type_], ref_template="{name}")
    inlined: dict[str, Any] = _inline(schema, components)
    return _without(inlined, BOUNDS) if terse else inlined


def outline(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a struct one level deep: which fields there are, and of what type."""
    fields = json_schema(type_)["properties"]
    return {
        "type": "object",
        "properties": {name: {"type": field["type"]} if "type" in field else {} for name, field in fields.items()},
    }


def parse(type_: type[T], arguments: dict[str, Any]) -> T:
    """Arguments as a struct; raises InvalidInput with the dotted path of the first thing that is wrong."""
    check_text(arguments)
    try:
        return msgspec.convert(arguments, type_)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None


def check_text(value: Any, path: str = "", depth: int = 0) -> None:
    """Raise InvalidInput for what JSON may carry but PostgreSQL cannot: NUL, lone surrogates, endless nesting.

    And for numbers beyond all bounds (1e400, or what Python's reader makes of NaN), which would be stored as null.
    """
    if depth > MAX_DEPTH:
        raise InvalidInput(f"Nested deeper than {MAX_DEPTH} levels", path=path.rsplit(".", 1)[0] or None)
    match value:
        case str():
            if "\x00" in value or not _encodable(value):
                raise InvalidInput("Holds a NUL or half a character, which text cannot", path=path or None)
        case float() if not isfinite(value):
            raise InvalidInput("Is a number that cannot be stored", path=path or None)
        case dict():
            for key, item in value.items():
                check_text(key, path, depth + 1)
                check_text(item, f"{path}.{key}" if path else key, depth + 1)
        case list():
            for place, item in enumerate(value):
                check_text(item, f"{path}.{place}" if path else str(place), depth + 1)


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def utc(time: datetime | None, path: str) -> datetime | None:
    """The same moment in UTC, as it can be stored; raises InvalidInput for one outside the calendar."""
    try:
        return None if time is None else storable(time)
    except OverflowError:
        raise InvalidInput("Outside the years 1 to 9999", path=path) from None


def _invalid(message: str) -> InvalidInput:
    at = _AT.search(message)
    path = re.sub(r"\[(\d+)\]", r".\1", at["path"] if at else "").replace("[...]", "").lstrip(".")
    text = message[: at.start()] if at else message
    for pattern, said in ((_MISSING, "Required"), (_UNKNOWN, "Unknown argument")):
        if field := pattern.match(text):
            return InvalidInput(said, path=f"{path}.{field['field']}" if path else field["field"])
    return InvalidInput(plain_pattern(in_plain_words(text)), path=path or None)


def _inline(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inline(item, components) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inline(components[schema["$ref"]] | {k: v for k, v in schema.items() if k != "$ref"}, components)
    if isinstance(schema.get("pattern"), str):
        schema = schema | {"pattern": plain_pattern(schema["pattern"])}
    if "properties" in schema:  # A struct's docstring speaks to us, not to a model.
        schema = {key: value for key, value in schema.items() if key != "description"}
    kept = {
        key: _inline(value, components) for key, value in schema.items() if key != "title" or isinstance(value, dict)
    }
    return _without_null(kept)


def _without(schema: Any, unsaid: frozenset[str]) -> Any:
    if isinstance(schema, list):
        return [_without(item, unsaid) for item in schema]
    if not isinstance(schema, dict):
        return schema
    properties = {name: _without(field, unsaid) for name, field in schema.get("properties", {}).items()}
    rest = {key: _without(value, unsaid) for key, value in schema.items() if key not in unsaid and key != "properties"}
    if rest.get("required") == []:
        del rest["required"]
    return rest | ({"properties": properties} if "properties" in schema else {})


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1 and len(options) < len(schema["anyOf"]) and "default" in schema:
        schema = options[0] | {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
    if schema.get("default", ...) in (None, [], {}):
        schema.pop("default")
    return schema
