"""Checks of JSON bodies before they are parsed: a parser makes an object of each value, and blocks the event loop."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import anyio.to_thread
import numpy as np
from numpy.typing import NDArray

from recollect.errors import ErrorCode, InvalidInput, TooLarge
from recollect.text.digits import MAX_DIGITS

T = TypeVar("T")

MAX_VALUES = 200_000
"""Values of one body at most: 20 ms of parsing. 4 MB could hold more than a million, which are of no use."""

MAX_MEMBERS = 50_000
"""Members of the objects of one body at most: each key makes a text and an entry of a table, which takes a parser ten
times as long as a number does."""

LARGE = 64 * 1024
"""Bytes from which on a body is checked in a thread."""

_SEPARATORS = (b",", b"[", b"{")
_DIGITS = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
"""What `bytes.translate` makes of each byte: a digit a zero, all else a space."""

_LONG = b"0" * (MAX_DIGITS + 1)


async def read_body(body: bytes, read: Callable[[bytes], T]) -> T:
    """The result of `read` for a body; a large one is read in a thread."""
    if len(body) < LARGE:
        return read(body)
    return await anyio.to_thread.run_sync(read, body)


async def require_quick_to_parse(body: bytes) -> None:
    """Refuse JSON that takes a parser long; what is no JSON is left to the parser.

    Raises TooLarge for more values, or members of objects, than a request may hold, InvalidInput for a number of too
    many digits.
    """
    if (
        sum(body.count(separator) for separator in _SEPARATORS) > MAX_VALUES
        and await anyio.to_thread.run_sync(_count_values, body) > MAX_VALUES
    ):
        raise TooLarge(
            f"A request may have at most {MAX_VALUES} values, including all those in its lists and objects. Send less "
            "in one call; POST /v1/graphs/{graph}/imports accepts large files",
            code=ErrorCode.REQUEST_TOO_LARGE,
        )
    if (
        body.count(b":") > MAX_MEMBERS
        and await anyio.to_thread.run_sync(_count_outside_texts, body, (b":",)) > MAX_MEMBERS
    ):
        raise TooLarge(
            f"A request may have at most {MAX_MEMBERS} members in all its objects. Send less in one call; "
            "POST /v1/graphs/{graph}/imports accepts large files",
            code=ErrorCode.REQUEST_TOO_LARGE,
        )
    if (
        len(body) > MAX_DIGITS
        and _LONG in body.translate(_DIGITS)
        and await anyio.to_thread.run_sync(_contains_long_number, body)
    ):
        raise InvalidInput(f"A number may have at most {MAX_DIGITS} digits; send a longer one as text")


def _count_values(body: bytes) -> int:
    """About how many values JSON holds: its separators outside of texts."""
    return _count_outside_texts(body, _SEPARATORS)


def _count_outside_texts(body: bytes, characters: Iterable[bytes]) -> int:
    outside = _outside_texts(body)
    return sum(int(np.count_nonzero(outside == ord(character))) for character in characters)


def _contains_long_number(body: bytes) -> bool:
    """Whether there are more digits in a row, outside of texts, than a number may have."""
    return _LONG in _outside_texts(body).tobytes().translate(_DIGITS)


def _outside_texts(body: bytes) -> NDArray[np.uint8]:
    """The characters of JSON, with zeros in place of its texts."""
    if b"\\" in body:  # Escaped backslashes first, so that none of them escapes a quote after it.
        body = body.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    characters = np.frombuffer(body, np.uint8)
    inside = np.bitwise_xor.accumulate(characters == ord('"'))
    return np.where(inside, np.uint8(0), characters)
