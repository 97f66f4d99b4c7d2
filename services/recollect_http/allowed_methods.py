"""The methods that an address takes, as the answer to OPTIONS lists them.

The framework's own answer lists only those that it knew of a path when its first route was registered.
"""

import re

from litestar.datastructures import MutableScopeHeaders
from litestar.routes import HTTPRoute
from litestar.types import Message, Scope

_PARAMETER = re.compile(r"\{[^}]+\}")


async def add_allowed_methods(message: Message, scope: Scope) -> None:
    """A hook before an answer is sent: list the methods of all routes of the address in the answer to OPTIONS."""
    if scope.get("method") != "OPTIONS" or message["type"] != "http.response.start" or message["status"] != 204:
        return
    shape = _shape(scope["path_template"])
    routes = [route for route in scope["litestar_app"].routes if isinstance(route, HTTPRoute)]
    methods = {method for route in routes if _shape(route.path_format) == shape for method in route.methods}
    MutableScopeHeaders.from_message(message)["Allow"] = ", ".join(sorted(methods))


def _shape(path: str) -> str:
    """A route's path without the names of its parameters."""
    return _PARAMETER.sub("{}", path)
