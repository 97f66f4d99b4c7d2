"""Parameters of OAuth requests: each once, of bounded length."""

from collections.abc import Mapping, Sequence
from typing import Any

from litestar.connection import ASGIConnection

from recollect_http.requests import AnyRequest
from recollect_http.requests.urlencoded import MalformedParameters, form_parameters, parameters

MAX_PARAMETERS = 100
MAX_VALUE = 4_000
"""Characters of one parameter."""


async def read_form(request: AnyRequest) -> dict[str, str]:
    """The parameters of a body. Raises MalformedParameters."""
    return _single_values(await form_parameters(request, limit=MAX_PARAMETERS))


def read_query(connection: ASGIConnection[Any, Any, Any, Any]) -> dict[str, str]:
    """The parameters of a query. Raises MalformedParameters."""
    return _single_values(parameters(connection.scope["query_string"], limit=MAX_PARAMETERS))


def _single_values(found: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Each parameter with its value, `resource` too; an empty one counts as missing (RFC 6749, 3.1)."""
    if any(len(value) > MAX_VALUE for values in found.values() for value in values):
        raise MalformedParameters(f"A parameter may have at most {MAX_VALUE} characters")
    return {name: value for name, (value,) in found.items() if value}
