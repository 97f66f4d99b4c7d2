"""Names of operations in the OpenAPI documents, from which the functions of generated clients are named."""

from typing import Any

from litestar.handlers import HTTPRouteHandler


def operation_id(handler: HTTPRouteHandler, *_: Any) -> str:
    """The `operationId` of a route: its handler's name in camel case, such as `listNodes` of `list_nodes`.

    The name is a verb and its object, unique in its document: `list`, `get`, `create`, `update` and `delete`, or the
    verb of what else the route does.
    """
    verb, *objects = handler.handler_name.split("_")
    return verb + "".join(word.title() for word in objects)
