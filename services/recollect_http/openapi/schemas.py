"""Schemas in the OpenAPI document, where the framework says too little of a type or too much.

A field is described at its type, by `msgspec.Meta`. Only the fields of types that tools have, too, are described in
a `SharedBody`: in the schema of a tool, a description would cost tokens in every conversation.
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

from litestar.openapi.spec import Reference, Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition
from msgspec import Struct, structs
from msgspec.json import schema_components

if TYPE_CHECKING:
    from litestar._openapi.schema_generation import SchemaCreator


BOUNDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "pattern": "pattern",
}
"""The bounds of values, as JSON Schema and as the framework call them."""


@dataclass(frozen=True, slots=True)
class SharedBody:
    """The description of a body, and those of its fields by their names in JSON."""

    description: str
    fields: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        """The description of a field. Every field has one."""
        return self.fields[name]


class DescribedSchemas(OpenAPISchemaPlugin):
    """Describes the schemas of structs, dataclasses and enums, which the framework makes.

    The framework would give a schema of this kind the description and the default of the first field that has it. For
    all other fields, in other bodies, these would be wrong.
    """

    def __init__(self, shared: Mapping[type, SharedBody] | None = None) -> None:
        self._shared = shared or {}

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        """Whether the field is a struct, a dataclass or an enum, and so has a schema of its own."""
        is_struct = not field_definition.is_union and field_definition.is_subclass_of(Struct)
        return is_struct or field_definition.is_dataclass_type or field_definition.is_enum

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: "SchemaCreator") -> Schema:
        """A reference to the schema, which the framework would give the field's description and default."""
        type_: Any = field_definition.origin or field_definition.annotation
        own = FieldDefinition.from_annotation(field_definition.annotation)
        if own.is_enum:
            schema_creator.for_enum_field(own)
        else:
            others = [plugin for plugin in schema_creator.plugins if plugin is not self]
            plugin = next(other for other in others if schema_creator.plugin_supports_field(other, own))
            plugin.to_openapi_schema(own, schema_creator)
        registry = schema_creator.schema_registry
        _complete(registry.get_schema_for_field_definition(own), type_, self._shared.get(type_))
        # The framework takes a reference as well as a schema, though its protocol does not say so.
        return cast(Schema, registry.get_reference_for_field_definition(own))


def _complete(schema: Schema, type_: type, shared: SharedBody | None) -> None:
    """Give the schema of a type its description, and its fields what the framework leaves out."""
    schema.description = _docstring(type_) if shared is None else shared.description
    if shared is not None and schema.properties is not None:
        schema.properties = {name: _described(field, shared[name]) for name, field in schema.properties.items()}
    if issubclass(type_, Struct):
        (reference,), components = schema_components([type_], ref_template="{name}")
        bounded = components[reference["$ref"]]["properties"]
        for field in structs.fields(type_):
            of_field = (schema.properties or {})[field.encode_name]
            _name_default(of_field, field)
            _give_bounds(of_field, bounded[field.encode_name])


def _described(field: Schema | Reference, description: str) -> Schema:
    if isinstance(field, Reference):
        return Schema(all_of=[field], description=description)
    field.description = description
    return field


def _name_default(schema: Schema | Reference, field: structs.FieldInfo) -> None:
    """Name the default of a field in its description, unless it is false or empty.

    Generators of clients take a field with the keyword `default` for one that is always there (openapi-typescript), or
    leave the operation out (openapi-python-client, for an object).
    """
    if not isinstance(schema, Schema):
        return
    schema.default = None
    default = field.default.value if isinstance(field.default, Enum) else field.default
    if isinstance(default, str | int | float) and default:
        value = f"`{default}`" if isinstance(default, str) else f"{default:g}"
        schema.description = f"{schema.description}; default: {value}"


def _give_bounds(schema: Schema | Reference, bounded: dict[str, Any]) -> None:
    """Give a field, and the items of a list, their bounds from the schema that msgspec makes of the same type.

    The framework leaves out those of items, and of optional fields those that are 0.
    """
    if isinstance(schema, Reference):
        return
    for part in _arms_of(bounded):
        for bound in BOUNDS.keys() & part.keys():
            if getattr(schema, BOUNDS[bound]) is None:
                setattr(schema, BOUNDS[bound], part[bound])
        for items in _items_of(schema) if "items" in part else ():
            _give_bounds(items, part["items"])


def _arms_of(bounded: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A schema, and all arms of its unions: a bound holds for values of one type, wherever it stands."""
    yield bounded
    for arm in bounded.get("anyOf", ()):
        yield from _arms_of(arm)


def _items_of(schema: Schema) -> Iterator[Schema | Reference]:
    """The schema of the items of a list, which may be null instead."""
    for part in (schema, *(schema.one_of or ())):
        if isinstance(part, Schema) and isinstance(part.items, Schema | Reference):
            yield part.items


def _docstring(type_: type) -> str:
    """The docstring, a paragraph a line."""
    paragraphs = (inspect.getdoc(type_) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
