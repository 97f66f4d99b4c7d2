"""Parameters of operations in the OpenAPI documents: what the framework leaves out of their schemas."""

from typing import Any

from litestar import Litestar
from litestar.handlers import HTTPRouteHandler
from litestar.params import ParameterKwarg
from litestar.routes import HTTPRoute
from litestar.typing import FieldDefinition

EXAMPLES = {"name": "default", "node": "Ada"}
"""Values for parameters of paths, with which a page about the API can send a request as it stands."""

_BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def handlers_of(app: Litestar) -> list[tuple[str, HTTPRouteHandler]]:
    """The handler of each operation, by method and path."""
    return [
        (f"{method} {route.path_format}", handler)
        for route in app.routes
        if isinstance(route, HTTPRoute)
        for handler in route.route_handlers
        for method in handler.http_methods
    ]


def with_parameters(operation: dict[str, Any], handler: HTTPRouteHandler) -> dict[str, Any]:
    """An operation whose parameters have their bounds and defaults, and those of its path an example."""
    fields = {_name(name, field): field for name, field in handler.parsed_fn_signature.parameters.items()}
    parameters = [
        parameter | _example(parameter) | {"schema": _completed(parameter["schema"], fields[parameter["name"]])}
        if parameter["name"] in fields
        else parameter
        for parameter in operation.get("parameters", [])
    ]
    return operation | ({"parameters": parameters} if parameters else {})


def _name(name: str, field: FieldDefinition) -> str:
    """The name of a parameter for clients: one named `from` has another name in Python."""
    definition = field.kwarg_definition
    return (isinstance(definition, ParameterKwarg) and definition.name) or name


def _example(parameter: dict[str, Any]) -> dict[str, str]:
    is_known = parameter["in"] == "path" and parameter["name"] in EXAMPLES
    return {"example": EXAMPLES[parameter["name"]]} if is_known else {}


def _completed(schema: dict[str, Any], field: FieldDefinition) -> dict[str, Any]:
    """The schema of a parameter with what the framework leaves out.

    It gives no default to a parameter that refers to the schema of its type, and no bound of 0 to one that is optional.
    """
    default = {"default": field.default} if "allOf" in schema and field.has_default else {}
    bounds = {_BOUNDS[name]: getattr(field.kwarg_definition, name, None) for name in _BOUNDS}
    return default | {name: bound for name, bound in bounds.items() if bound is not None} | schema
