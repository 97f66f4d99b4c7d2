"""Parameters as forms and queries send them: urlencoded, of bounded number and size, each once.

A name that comes twice is refused whoever reads it: of two values one reader would take the first, another the last.
What may come several times, such as boxes that are checked, its reader names.
"""

from collections.abc import Collection
from typing import Any
from urllib.parse import parse_qsl

from litestar import Request

from recollect.errors import InvalidInput

FORM = "application/x-www-form-urlencoded"
MAX_FORM_BYTES = 32 * 1024


class MalformedParameters(InvalidInput):
    """The parameters cannot be read; the message says why."""


async def form_parameters(
    request: Request[Any, Any, Any], *, most: int, several: Collection[str] = ()
) -> dict[str, list[str]]:
    """Those of a body, as `parameters` reads them. Raises MalformedParameters."""
    kind = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if kind != FORM:
        raise MalformedParameters(f"The body must be {FORM}")
    return parameters(await request.body(), most=most, several=several)


def parameters(encoded: bytes, *, most: int, several: Collection[str] = ()) -> dict[str, list[str]]:
    """Each parameter with its one value, those of `several` with as many as there are; at most `most` in all.

    Raises MalformedParameters.
    """
    if len(encoded) > MAX_FORM_BYTES:
        raise MalformedParameters(f"The parameters take {MAX_FORM_BYTES} bytes at most")
    try:
        pairs = parse_qsl(encoded.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=most)
    except ValueError:  # UnicodeDecodeError is one
        raise MalformedParameters("The parameters are not encoded as they should be, or too many") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if name in found and name not in several:
            raise MalformedParameters("A parameter is there twice")
        if "\x00" in value:
            raise MalformedParameters("A parameter holds the character U+0000")
        found.setdefault(name, []).append(value)
    return found
