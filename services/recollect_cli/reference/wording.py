"""Schemas and lists in words: the type of an argument, the shape of a result, the text of a table's cell."""

from collections.abc import Iterable
from typing import Any

Schema = dict[str, Any]

LINE = 100
"""Characters of a result's shape that stay on one line, at most."""


def type_of(schema: Schema) -> str:
    """The type of an argument in words, with its bounds."""
    if "anyOf" in schema:
        return " or ".join(type_of(option) for option in schema["anyOf"])
    if "enum" in schema:
        return listed((f"`{literal(value)}`" for value in schema["enum"]), "or")
    match schema.get("type"):
        case "array":
            count = _between(schema, "minItems", "maxItems", "entries").removeprefix(", ").removesuffix(" entries")
            return f"list ({count}) of {type_of(schema.get('items', {}))}"
        case "string":
            return _text(schema)
        case "integer" | "number" as number:
            word = "whole number" if number == "integer" else "number"
            return word + _above(schema) + _between(schema, "minimum", "maximum", "")
        case "boolean":
            return "yes or no"
        case "object" | "null" as word:
            return str(word)
    return "anything"


def literal(value: Any) -> str:
    """A value as JSON spells it, a text without its quotes."""
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def shape_of(schema: Schema, indent: str = "") -> str:
    """The shape of a result: on one line where it fits, else with a line for each field."""
    flat = _flat(schema)
    fields = schema.get("properties") or schema.get("items", {}).get("properties")
    if len(indent) + len(flat) <= LINE or not fields:
        return flat
    owner = schema if "properties" in schema else schema["items"]
    inner = indent + "  "
    lines = [f"{inner}{_field(name, owner)}: {shape_of(field, inner)}," for name, field in fields.items()]
    body = "\n".join(["{", *lines, indent + "}"])
    return body if "properties" in schema else f"[{body}, …]"


def cell(text: str) -> str:
    """A text for a table's cell: on one line, with its bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def listed(words: Iterable[str], conjunction: str = "and") -> str:
    """Words as an enumeration; raises ValueError where there are none."""
    *rest, last = words
    return f"{', '.join(rest)} {conjunction} {last}" if rest else last


def _text(schema: Schema) -> str:
    match schema.get("format"):
        case "date-time":
            return "time"
        case "uuid":
            return "id"
    shape = f", like `{cell(schema['pattern'])}`" if "pattern" in schema else ""
    return "text" + _between(schema, "minLength", "maxLength", "characters") + shape


def _above(schema: Schema) -> str:
    return f", more than {_number(schema['exclusiveMinimum'])}" if "exclusiveMinimum" in schema else ""


def _between(schema: Schema, minimum: str, maximum: str, unit: str) -> str:
    low, high = schema.get(minimum), schema.get(maximum)
    if high is None:
        return "" if not low and unit else "" if low is None else f", {_number(low)} or more {unit}".rstrip()
    bounds = f"at most {_number(high)}" if low is None or (unit and not low) else f"{_number(low)} to {_number(high)}"
    return f", {bounds} {unit}".rstrip()


def _number(value: float) -> str:
    return f"{value:,}".removesuffix(".0")


def _flat(schema: Schema) -> str:
    if "anyOf" in schema:
        return " | ".join(_flat(option) for option in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    match schema.get("type"):
        case "object" if "properties" in schema:
            return "{" + ", ".join(f"{_field(n, schema)}: {_flat(f)}" for n, f in schema["properties"].items()) + "}"
        case "object":
            values = schema.get("additionalProperties")
            return f"{{…: {_flat(values)}}}" if isinstance(values, dict) and values else "{…}"
        case "array":
            return f"[{_flat(schema.get('items', {}))}, …]"
        case "string":
            return "time" if schema.get("format") == "date-time" else "text"
        case str(simple):
            return {"boolean": "true | false"}.get(simple, simple)
    return "anything"


def _field(name: str, owner: Schema) -> str:
    return name if name in owner.get("required", ()) else f"{name}?"
