"""msgspec types as the JSON Schemas that MCP carries."""

from functools import cache
from typing import Any

import msgspec

from recollect.settings import Settings
from recollect_gateway.shapes import plain_pattern

UNSAID = frozenset(
    {
        *("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "pattern"),
        *("additionalProperties", "default"),
    }
)
"""What a listed schema leaves unsaid. It holds all the same: a call that breaks it is told how."""

SHARED = frozenset({"graph", "as_of", "owner_id", "limit", "offset", "cursor"})
"""Arguments that mean the same everywhere: the server's instructions say once what."""


_DEFAULT = "x-default-setting"


def default_of(setting: str) -> dict[str, str]:
    """For `extra_json_schema`: the default of an argument that may be null is this setting."""
    return {_DEFAULT: setting}


def json_schema(type_: type[msgspec.Struct], *, settings: Settings | None = None) -> dict[str, Any]:
    """The JSON Schema of a struct, self-contained: references resolved, titles and null defaults left out.

    Null is still accepted where a field may be left out: models send it. Defaults that are settings are told as
    `settings` has them, or as they are where nothing is set.
    """
    told: dict[str, Any] = _with_defaults(_inlined(type_), settings)
    return told


def listed_schema(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The same as `tools/list` tells it, in few words: every token of it is paid for in every conversation.

    Bounds, defaults and what shared arguments mean are left out.
    """
    schema: dict[str, Any] = _without(json_schema(type_), UNSAID)
    for name in SHARED & schema.get("properties", {}).keys() - set(schema.get("required", ())):
        schema["properties"][name].pop("description", None)
    return schema


def outline(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a struct one level deep: which fields there are, and of what type."""
    fields = json_schema(type_)["properties"]
    return {
        "type": "object",
        "properties": {name: {"type": field["type"]} if "type" in field else {} for name, field in fields.items()},
    }


def items_schema(type_: type[msgspec.Struct]) -> dict[str, Any]:
    """What a list of `read_one_by_one` says of its items, which are these structs."""
    return {"items": json_schema(type_)}


@cache
def _inlined(type_: type[msgspec.Struct]) -> Any:
    """What does not depend on settings; it is not to be changed. All tools together take 0.2 s of a core."""
    (schema,), components = msgspec.json.schema_components([type_], ref_template="{name}")
    return _inline(schema, components)


def _with_defaults(schema: Any, settings: Settings | None) -> Any:
    if isinstance(schema, list):
        return [_with_defaults(item, settings) for item in schema]
    if not isinstance(schema, dict):
        return schema
    told = {key: _with_defaults(value, settings) for key, value in schema.items() if key != _DEFAULT}
    if _DEFAULT in schema:
        name = schema[_DEFAULT]
        told["default"] = getattr(settings, name) if settings else Settings.model_fields[name].default
    return told


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
    if options := rest.get("anyOf"):
        types = [option["type"] for option in options if [*option] == ["type"]]
        if len(types) == len(options):
            rest = {"type": types} | {key: value for key, value in rest.items() if key != "anyOf"}
    return rest | ({"properties": properties} if "properties" in schema else {})


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    options = [option for option in schema.get("anyOf", ()) if option != {"type": "null"}]
    if options and len(options) < len(schema["anyOf"]) and "default" in schema:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        schema = (options[0] if len(options) == 1 else {"anyOf": options}) | rest
    if schema.get("default", ...) in (None, [], {}):
        schema.pop("default")
    return schema
