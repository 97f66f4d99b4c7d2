"""Whole lines from text that arrives in pieces."""

from collections.abc import Iterator

from recollect.errors import InvalidInput
from recollect.transfer.formats.decoding import MAX_CELL


def whole_lines(texts: Iterator[str]) -> Iterator[str]:
    """Yield lines with their ends; only `\\n` ends a line. Raises InvalidInput for a line that is too long."""
    pieces: list[str] = []
    size, number = 0, 1
    for text in texts:
        *lines, rest = text.split("\n")
        for line in lines:
            yield "".join([*pieces, line, "\n"])
            pieces, size, number = [], 0, number + 1
        pieces.append(rest)
        size += len(rest)
        if size > MAX_CELL:
            raise InvalidInput(f"More than {MAX_CELL} characters", path=f"line {number}")
    if size:
        yield "".join(pieces)
