"""Which methods an address takes, as OPTIONS answers.

The framework's answer tells those that were known of a path when its first route was registered.
"""

import re

from litestar.datastructures import MutableScopeHeaders
from litestar.routes import HTTPRoute
from litestar.types import Message, Scope

_PARAMETER = re.compile(r"\{[^}]+\}")


async def tell_methods(message: Message, scope: Scope) -> None:
    """A hook before an answer is sent: what was asked by OPTIONS tells the methods of all routes of the address."""
    if scope.get("method") != "OPTIONS" or message["type"] != "http.response.start" or message["status"] != 204:
        return
    here = _shape(scope["path_template"])
    routes = [route for route in scope["litestar_app"].routes if isinstance(route, HTTPRoute)]
    methods = {method for route in routes if _shape(route.path_format) == here for method in route.methods}
    MutableScopeHeaders.from_message(message)["Allow"] = ", ".join(sorted(methods))


def _shape(path: str) -> str:
    """A route's path, whatever its parameters are called."""
    return _PARAMETER.sub("{}", path)
