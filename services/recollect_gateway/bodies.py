"""JSON bodies before they are parsed: a parser makes an object of each value, and holds the event loop meanwhile."""

import anyio.to_thread
import numpy as np

from recollect.errors import ErrorCode, TooLarge

MAX_VALUES = 200_000
"""Values of one body at most: 20 ms of parsing. 4 MB could hold a million and more, none of them of any use."""

LARGE = 64 * 1024
"""Bytes from which on what a body says is checked beside the event loop."""

_SEPARATORS = (b",", b"[", b"{")


async def require_few_values(body: bytes) -> None:
    """Raise TooLarge for JSON that holds more values than a request may; what is no JSON is left to its parser."""
    if sum(body.count(separator) for separator in _SEPARATORS) <= MAX_VALUES:
        return
    if await anyio.to_thread.run_sync(_values_of, body) > MAX_VALUES:
        raise TooLarge(
            f"A request holds {MAX_VALUES} values at most, all those in its lists and objects. Send less in one call; "
            "POST /v1/graphs/{graph}/imports takes a large file",
            code=ErrorCode.REQUEST_TOO_LARGE,
        )


def _values_of(body: bytes) -> int:
    """How many values JSON holds, about: its separators outside of texts."""
    if b"\\" in body:  # Escaped backslashes first, so that what they stand before counts as it is.
        body = body.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    characters = np.frombuffer(body, np.uint8)
    inside = np.bitwise_xor.accumulate(characters == ord('"'))
    return sum(int(np.count_nonzero((characters == ord(separator)) & ~inside)) for separator in _SEPARATORS)
