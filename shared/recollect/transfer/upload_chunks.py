"""A file of any size as bounded requests, which remember where in the file their lines stand."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import msgspec

from recollect.graph.entities.model import NewEntity
from recollect.transfer.formats.jsonl import read_kept, write_line
from recollect.transfer.model import MAX_LINES, ImportProblem, UnreadableLine

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

LINE_BYTES = 64 * 1024 * 1024
"""Longest line that is read: it bounds the reader's memory."""

CHUNK_BYTES = 256 * 1024
CHUNK_OBSERVATIONS = 2_000
CHUNK_LINES = 500
"""What one request carries: well below what gateways and proxies accept, and soon written."""


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """One line that cannot be imported, and why; `number` counts from 1 in the file."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class UploadChunk:
    """One request. `numbers` are the file's lines of its own lines, in order; `broken` were found on the way.

    `lines_read` and `bytes_read` say how far into the file it comes.
    """

    body: bytes
    numbers: tuple[int, ...]
    broken: tuple[BrokenLine, ...]
    lines_read: int
    bytes_read: int


def read_upload_chunks(file: BinaryIO) -> Iterator[UploadChunk]:
    """The file's lines in chunks, broken ones set aside.

    An entity that is too long for one request is given in several lines of its name, which add up.
    """
    packing = _OpenChunk()
    for number, (length, raw) in enumerate(_raw_lines(file), 1):
        try:
            for piece in _pieces(raw, first=number == 1):
                if not packing.has_room(piece):
                    yield packing.take()
                packing.add(number, piece)
                packing.broken += [
                    BrokenLine(number, f"{told.where.strip('.')}: {told.reason}") for told in piece.problems
                ]
        except UnreadableLine as error:
            packing.broken.append(BrokenLine(number, error.reason))
        packing.lines_read, packing.bytes_read = number, packing.bytes_read + length
        if len(packing.broken) >= MAX_LINES:
            yield packing.take()
    yield packing.take()


@dataclass(frozen=True, slots=True)
class _LinePart:
    """A line, or a part of one that is too long for one request."""

    raw: bytes
    observations: int
    problems: tuple[ImportProblem, ...] = ()
    """What of the line cannot be kept, and stands in none of its pieces."""


@dataclass(slots=True)
class _OpenChunk:
    """The packet that is being filled."""

    pieces: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    broken: list[BrokenLine] = field(default_factory=list)
    size: int = 0
    observations: int = 0
    lines_read: int = 0
    bytes_read: int = 0

    def has_room(self, piece: _LinePart) -> bool:
        return not self.pieces or (
            len(self.pieces) < CHUNK_LINES
            and self.size + len(piece.raw) <= CHUNK_BYTES
            and self.observations + piece.observations <= CHUNK_OBSERVATIONS
        )

    def add(self, number: int, piece: _LinePart) -> None:
        self.pieces.append(piece.raw)
        self.numbers.append(number)
        self.size += len(piece.raw)
        self.observations += piece.observations

    def take(self) -> UploadChunk:
        packet = UploadChunk(
            b"".join(self.pieces), tuple(self.numbers), tuple(self.broken), self.lines_read, self.bytes_read
        )
        self.pieces, self.numbers, self.broken, self.size, self.observations = [], [], [], 0, 0
        return packet


def _raw_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Each line with its length in bytes; None for one that is longer than LINE_BYTES."""
    while raw := file.readline(LINE_BYTES):
        length = len(raw)
        if raw.endswith(b"\n") or length < LINE_BYTES:
            yield length, raw
            continue
        while rest := file.readline(LINE_BYTES):
            length += len(rest)
            if rest.endswith(b"\n"):
                break
        yield length, None


def _pieces(raw: bytes | None, *, first: bool) -> Iterator[_LinePart]:
    """The line, or the lines that it must be given in; raises Unreadable."""
    if raw is None:
        raise UnreadableLine(f"longer than {LINE_BYTES // 1024 // 1024} MiB")
    line = (raw.removeprefix(BYTE_ORDER_MARK) if first else raw).strip()
    if not line:
        return
    item, problems = read_kept(line, "")
    if problems:
        line = write_line(item).strip()
    count = len(item.observations) if isinstance(item, NewEntity) else 0
    if len(line) < CHUNK_BYTES and count <= CHUNK_OBSERVATIONS:
        yield _LinePart(line + b"\n", count, tuple(problems))
    elif isinstance(item, NewEntity):
        for place, part in enumerate(_parts(item)):
            yield _LinePart(write_line(part), len(part.observations), () if place else tuple(problems))
    else:  # it is short once what nobody reads is left out
        yield _LinePart(write_line(item), 0)


def _parts(entity: NewEntity) -> Iterator[NewEntity]:
    """The entity in parts, none of which fills more than half a chunk."""
    start = size = 0
    for place, text in enumerate(entity.observations):
        length = len(msgspec.json.encode(text))
        if place > start and (size + length > CHUNK_BYTES // 2 or place - start >= CHUNK_OBSERVATIONS // 2):
            yield replace(entity, observations=entity.observations[start:place])
            start, size = place, 0
        size += length
    yield replace(entity, observations=entity.observations[start:])
