"""Code that readers share: it decodes bytes, and cells that hold lists or JSON."""

import codecs
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from recollect.errors import InvalidInput
from recollect.transfer.model import ImportProblem, UnreadableLine
from recollect.transfer.records import AnyRecord

MAX_CELL = 16 * 1024 * 1024
"""Most characters of one cell, attribute or JSON item, which bounds a reader's memory."""

SEPARATOR = "; "
"""The separator of items in a cell that is not JSON, as the enhanced memory server writes it."""

BROKEN_BYTES = "surrogateescape"
"""The error handler that keeps bytes which are not UTF-8 in a text, until its lines are read one by one."""

_COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18")
"""The first bytes of gzip, zip, bzip2, xz, zstd and lz4."""


@dataclass(frozen=True, slots=True)
class ParsedRecord:
    """A record and its position in the file: `entities.3`, or `line 7`.

    `until`: the earliest expiry of the items to which it refers, as far as the file has it; None: never. `continues`:
    it is a later part of an entity, with more of its aliases or observations (`batches`).
    """

    where: str
    record: AnyRecord
    until: datetime | None = None
    continues: bool = False


Read = Iterator[ParsedRecord | ImportProblem]


def decoded(chunks: Iterable[bytes], *, by_line: bool = False) -> Iterator[str]:
    """Bytes decoded as UTF-8, without a byte order mark. Raises InvalidInput for compressed input, other bytes and NUL.

    `by_line`: bytes that are not UTF-8 are kept (BROKEN_BYTES), and so is NUL, for a reader that checks each line by
    itself.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")(BROKEN_BYTES if by_line else "strict")
    lines, has_begun = 1, False
    for chunk in chunks:
        if not has_begun and chunk:
            has_begun = True
            _refuse_compressed(chunk)
        text = _decode(decoder, chunk, lines)
        if "\0" in text and not by_line:
            lines += text[: text.index("\0")].count("\n")
            raise InvalidInput("Holds the character NUL, which cannot be stored", path=f"line {lines}")
        lines += text.count("\n")
        if text:
            yield text
    _decode(decoder, b"", lines, final=True)


def in_chunks(text: str, size: int = 64 * 1024) -> Iterator[bytes]:
    """A text as the chunks of bytes that readers take. Raises InvalidInput for half of a surrogate pair."""
    for start in range(0, len(text), size):
        try:
            yield text[start : start + size].encode()
        except UnicodeEncodeError:
            raise InvalidInput(
                "Holds half a character (a lone surrogate), which cannot be stored", path="data"
            ) from None


def list_cell(cell: str) -> list[Any]:
    """The list in a cell: a JSON array, else the texts between `; `."""
    if not cell:
        return []
    if cell.startswith("["):
        try:
            found: list[Any] = msgspec.json.decode(cell, type=list[Any])
            return found
        except (msgspec.MsgspecError, RecursionError):
            pass
    return cell.split(SEPARATOR)


def json_cell(cell: str) -> Any:
    """The value of the JSON in a cell. Raises UnreadableLine."""
    try:
        return msgspec.json.decode(cell)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnreadableLine("is not JSON") from error


def number_cell(cell: str) -> float:
    """The number in a cell. Raises UnreadableLine."""
    try:
        return float(cell)
    except ValueError:
        raise UnreadableLine("is not a number") from None


def json_text(value: Any) -> str:
    """A value as JSON in which characters that XML cannot hold are escaped."""
    return msgspec.json.encode(value).decode().replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")


def _refuse_compressed(head: bytes) -> None:
    if head.startswith(_COMPRESSED):
        raise InvalidInput("Compressed input is not accepted; send the uncompressed file", path="data")


def _decode(decoder: codecs.IncrementalDecoder, chunk: bytes, line: int, *, final: bool = False) -> str:
    try:
        return decoder.decode(chunk, final)
    except UnicodeDecodeError as error:
        line += error.object[: error.start].count(b"\n")
        raise InvalidInput("Not UTF-8", path=f"line {line}") from None
