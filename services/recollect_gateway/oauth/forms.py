"""Parameters as OAuth sends them: urlencoded, each once, of bounded length."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from litestar import Request
from litestar.connection import ASGIConnection

MAX_FORM_BYTES = 32 * 1024
"""Bytes of a body that OAuth's endpoints read."""

MAX_PARAMETERS = 100
MAX_VALUE = 4_000
"""Characters of one parameter."""

FORM = "application/x-www-form-urlencoded"


class MalformedParameters(Exception):
    """The parameters cannot be read; the message says why."""


async def read_form(request: Request[Any, Any, Any]) -> dict[str, str]:
    """The parameters of a body. Raises MalformedParameters."""
    kind = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if kind != FORM:
        raise MalformedParameters(f"The body must be {FORM}")
    return _once(_pairs(await request.body()))


def read_query(connection: ASGIConnection[Any, Any, Any, Any]) -> dict[str, str]:
    """The parameters of a query. Raises MalformedParameters."""
    return _once(_pairs(connection.scope["query_string"]))


def _pairs(encoded: bytes) -> list[tuple[str, str]]:
    if len(encoded) > MAX_FORM_BYTES:
        raise MalformedParameters(f"The parameters take {MAX_FORM_BYTES} bytes at most")
    try:
        return parse_qsl(
            encoded.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS
        )
    except ValueError:
        raise MalformedParameters("The parameters are not encoded as they should be, or too many") from None


def _once(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Each once (RFC 6749, 3.1), `resource` too; one without a value is as one that is not there."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            raise MalformedParameters("A parameter is there twice")
        if len(value) > MAX_VALUE or "\x00" in value:
            raise MalformedParameters(f"A parameter has {MAX_VALUE} characters at most, none of them U+0000")
        found[name] = value
    return {name: value for name, value in found.items() if value}
