"""Names in the OpenAPI documents, from which clients are generated: of operations, and of schemas of generic types."""

import re
from typing import Any

from litestar.handlers import HTTPRouteHandler

_GENERIC = re.compile(rb"\b(?P<of>[A-Z]\w*?)_recollect\w*(?:\.\w+)*\.(?P<what>\w+)_(?=\")")
"""The framework's name for the schema of a generic type: `Page_recollect_gateway.management.keys.KeyBody_`."""


def operation_id(handler: HTTPRouteHandler, *_: Any) -> str:
    """The `operationId` of a route: its handler's name in camel case, such as `listNodes` of `list_nodes`.

    The name is a verb and its object, unique in its document: `list`, `get`, `create`, `update` and `delete`, or the
    verb of what else the route does.
    """
    verb, *objects = handler.handler_name.split("_")
    return verb + "".join(word.title() for word in objects)


def name_generic_schemas(rendered: bytes) -> bytes:
    """A rendered document in which the schema of `Page[KeyBody]` is named `PageOfKeyBody`.

    The framework's name changes with our modules.
    """
    return _GENERIC.sub(rb"\g<of>Of\g<what>", rendered)
