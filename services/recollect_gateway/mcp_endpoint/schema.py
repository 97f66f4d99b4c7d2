"""The JSON Schemas of msgspec types, as MCP carries them."""

from functools import cache
from typing import Any

import msgspec

from recollect.settings import Settings
from recollect_http.requests.argument_types import plain_pattern

UNLISTED_KEYWORDS = frozenset(
    {
        *("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "pattern"),
        *("additionalProperties", "default"),
    }
)
"""Keywords that a listed schema leaves out. The rules hold all the same: the error of a bad call names the rule."""

SHARED_ARGUMENTS = frozenset({"graph", "as_of", "time_zone", "owner_id", "limit", "offset", "cursor"})
"""Arguments that mean the same everywhere: the server's instructions describe them once."""


PORTABLE_FORMATS = frozenset({"date-time"})
"""Formats that a listed schema may have: the Gemini API refuses a request with a tool that has any other."""

_DEFAULT = "x-default-setting"


def default_of(setting: str) -> dict[str, str]:
    """A value for `extra_json_schema` which says that the default of an argument is this setting."""
    return {_DEFAULT: setting}


def json_schema(type_: type[msgspec.Struct], *, settings: Settings | None = None) -> dict[str, Any]:
    """The JSON Schema of a struct, self-contained: references resolved, titles and null defaults left out.

    Null is still accepted where a field may be left out: models send it. Defaults that are settings come from
    `settings` or, if that is None, are the defaults of the settings.
    """
    schema: dict[str, Any] = _with_defaults(_inlined(type_), settings)
    return schema


def listed_schema(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a struct as `tools/list` has it: short, since its tokens are paid for in every conversation.

    Bounds, defaults and the descriptions of shared arguments are left out. What remains is in the subset of JSON Schema
    that every model API takes: clients pass it on, and an API refuses the whole request for one schema outside of it.
    """
    schema: dict[str, Any] = _portable(_without(json_schema(type_), UNLISTED_KEYWORDS))
    for name in SHARED_ARGUMENTS & schema.get("properties", {}).keys() - set(schema.get("required", ())):
        schema["properties"][name].pop("description", None)
    return schema


def outline(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a struct one level deep: its fields and their types, and those of the items of lists."""
    fields = _portable(json_schema(type_))["properties"]
    return {"type": "object", "properties": {name: _type_alone(field) for name, field in fields.items()}}


def _type_alone(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": schema["type"]} | ({"items": _type_alone(schema["items"])} if schema["type"] == "array" else {})


def items_schema(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The schema of a list in `read_one_by_one`, whose items are these structs."""
    return {"items": json_schema(type_)}


@cache
def _inlined(type_: type[msgspec.Struct]) -> Any:
    """The schema of a struct, without defaults that are settings. It is cached, so callers must not change it.

    The schemas of all tools take 0.2 s of a core.
    """
    (schema,), components = msgspec.json.schema_components([type_], ref_template="{name}")
    return _inline(schema, components)


def _with_defaults(schema: Any, settings: Settings | None) -> Any:
    if isinstance(schema, list):
        return [_with_defaults(item, settings) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _with_defaults(value, settings) for key, value in schema.items() if key != _DEFAULT}
    if _DEFAULT in schema:
        name = schema[_DEFAULT]
        result["default"] = getattr(settings, name) if settings else Settings.model_fields[name].default
    return result


def _inline(schema: Any, components: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inline(item, components) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inline(components[schema["$ref"]] | {k: v for k, v in schema.items() if k != "$ref"}, components)
    if isinstance(schema.get("pattern"), str):
        schema = schema | {"pattern": plain_pattern(schema["pattern"])}
    if "properties" in schema:  # A struct's docstring is for developers, not for models.
        schema = {key: value for key, value in schema.items() if key != "description"}
    untitled = {
        key: _inline(value, components) for key, value in schema.items() if key != "title" or isinstance(value, dict)
    }
    return _without_null(untitled)


def _without(schema: Any, keywords: frozenset[str]) -> Any:
    if isinstance(schema, list):
        return [_without(item, keywords) for item in schema]
    if not isinstance(schema, dict):
        return schema
    properties = {name: _without(field, keywords) for name, field in schema.get("properties", {}).items()}
    rest = {
        key: _without(value, keywords) for key, value in schema.items() if key not in keywords and key != "properties"
    }
    if rest.get("required") == []:
        del rest["required"]
    return rest | ({"properties": properties} if "properties" in schema else {})


def _portable(schema: Any) -> Any:
    """Simplify a schema, so that every value has one type, and only formats that every model API knows.

    A union becomes its option for texts, which callers may send for the other options, too. Without such an option, it
    becomes the one that is not null.
    """
    if isinstance(schema, list):
        return [_portable(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    properties = {name: _portable(field) for name, field in schema.get("properties", {}).items()}
    rest = {key: _portable(value) for key, value in schema.items() if key != "properties"}
    if options := rest.pop("anyOf", None):
        rest = min(options, key=_portability) | rest
    if "enum" in rest:
        rest = {"type": "string"} | rest
    if rest.get("format") not in PORTABLE_FORMATS:
        rest.pop("format", None)
    return rest | ({"properties": properties} if "properties" in schema else {})


def _portability(option: dict[str, Any]) -> int:
    return {"string": 0, "null": 2}.get(option["type"], 1)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if options and len(options) < len(schema["anyOf"]) and "default" in schema:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        schema = (options[0] if len(options) == 1 else {"anyOf": options}) | rest
    if schema.get("default", ...) in (None, [], {}):
        schema.pop("default")
    return schema
