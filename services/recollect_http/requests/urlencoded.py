"""Parameters of forms and queries: urlencoded, of bounded number and size, each once.

A name that comes twice is refused: of two values one reader would take the first, another the last. Callers name the
parameters that may come several times, such as checked boxes, as `several`.
"""

from collections.abc import Collection
from urllib.parse import parse_qsl

from recollect.errors import InvalidInput
from recollect_http.requests import AnyRequest

FORM = "application/x-www-form-urlencoded"
MAX_FORM_BYTES = 32 * 1024


class MalformedParameters(InvalidInput):
    """The parameters cannot be read; the message says why."""


async def form_parameters(
    request: AnyRequest, *, limit: int, several: Collection[str] = (), most_bytes: int = MAX_FORM_BYTES
) -> dict[str, list[str]]:
    """The parameters of a body, as `parameters` reads them. Raises MalformedParameters."""
    kind = request.headers.get("content-type", "").split(";", 1)[0].strip().lower()
    if kind != FORM:
        raise MalformedParameters(f"The body must be {FORM}")
    return parameters(await request.body(), limit=limit, several=several, most_bytes=most_bytes)


def parameters(
    encoded: bytes, *, limit: int, several: Collection[str] = (), most_bytes: int = MAX_FORM_BYTES
) -> dict[str, list[str]]:
    """Each parameter with its one value, those of `several` with all their values; at most `limit` values.

    Raises MalformedParameters.
    """
    if len(encoded) > most_bytes:
        raise MalformedParameters(f"The parameters may have at most {most_bytes} bytes")
    try:
        pairs = parse_qsl(encoded.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=limit)
    except ValueError:  # UnicodeDecodeError is one
        raise MalformedParameters("The parameters are not encoded correctly, or there are too many") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        if name in found and name not in several:
            raise MalformedParameters("A parameter occurs twice")
        if "\x00" in value:
            raise MalformedParameters("A parameter holds the character U+0000")
        found.setdefault(name, []).append(value)
    return found
