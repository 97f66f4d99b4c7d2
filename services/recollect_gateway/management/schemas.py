"""Descriptions of schemas in the OpenAPI document, where the framework has none: of whole bodies, and of some fields.

A field is described at its type, by `msgspec.Meta`. Only the fields of types that tools have, too, are described in
`shared_bodies.py`: in the schema of a tool, a description would cost tokens in every conversation.
"""

import inspect
from enum import Enum
from typing import TYPE_CHECKING, Any

from litestar.openapi.spec import Reference, Schema
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition
from msgspec import Struct

from recollect.accounts.audit.model import Action
from recollect.caller import Role, Scope
from recollect.graph.relations.model import Direction
from recollect.transfer.model import Strategy
from recollect.webhooks.events.model import EventType
from recollect_gateway.management.shared_bodies import SHARED

if TYPE_CHECKING:
    from litestar._openapi.schema_generation import SchemaCreator

ENUMS: tuple[type[Enum], ...] = (Action, Direction, EventType, Role, Scope, Strategy)
"""Enums with a schema of their own, to which the framework gives the description of the first field that has them."""


class DescribedSchemas(OpenAPISchemaPlugin):
    """Describes the schemas of structs and dataclasses, which the framework's own plugins make."""

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        """Whether the field is a struct or a dataclass."""
        is_struct = not field_definition.is_union and field_definition.is_subclass_of(Struct)
        return is_struct or field_definition.is_dataclass_type

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: "SchemaCreator") -> Schema:
        """The framework's schema with descriptions."""
        others = [plugin for plugin in schema_creator.plugins if plugin is not self]
        plugin = next(other for other in others if schema_creator.plugin_supports_field(other, field_definition))
        schema: Schema = plugin.to_openapi_schema(field_definition, schema_creator)
        type_: type = field_definition.origin or field_definition.annotation
        shared = SHARED.get(type_)
        schema.description = _docstring(type_) if shared is None else shared.description
        if shared is not None and schema.properties is not None:
            schema.properties = {name: _described(field, shared[name]) for name, field in schema.properties.items()}
        return schema


def describe_enums(components: dict[str, Any]) -> dict[str, Any]:
    """The schemas of a rendered document, in which each enum has its own description."""
    own = {enum.__name__: {"description": _docstring(enum)} for enum in ENUMS}
    return {name: schema | own.get(name, {}) for name, schema in components.items()}


def _described(field: Schema | Reference, description: str) -> Schema:
    if isinstance(field, Reference):
        return Schema(all_of=[field], description=description)
    field.description = description
    return field


def _docstring(type_: type) -> str:
    """The docstring, a paragraph a line."""
    paragraphs = (inspect.getdoc(type_) or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
