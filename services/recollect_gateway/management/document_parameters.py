"""Parameters in the OpenAPI documents: what the framework leaves out of their schemas."""

from typing import Any

from litestar.handlers import HTTPRouteHandler
from litestar.params import ParameterKwarg
from litestar.typing import FieldDefinition


def with_parameters(operation: dict[str, Any], handler: HTTPRouteHandler) -> dict[str, Any]:
    """An operation whose parameters have their defaults also where they refer to the schema of their type."""
    if "parameters" not in operation:
        return operation
    fields = {_name(name, field): field for name, field in handler.parsed_fn_signature.parameters.items()}
    parameters = [
        parameter | {"schema": _with_default(parameter["schema"], fields[parameter["name"]])}
        if parameter["name"] in fields
        else parameter
        for parameter in operation["parameters"]
    ]
    return operation | {"parameters": parameters}


def _name(name: str, field: FieldDefinition) -> str:
    """The name of a parameter for clients: one named `from` has another name in Python."""
    definition = field.kwarg_definition
    return (isinstance(definition, ParameterKwarg) and definition.name) or name


def _with_default(schema: dict[str, Any], field: FieldDefinition) -> dict[str, Any]:
    return schema | {"default": field.default} if "allOf" in schema and field.has_default else schema
