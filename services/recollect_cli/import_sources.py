"""What `recollect import` sends: a file as it is, the conversations of an archive, or documents read into a file."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader, FileIO
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Literal, cast
from zipfile import BadZipFile, ZipFile

from recollect.errors import InvalidInput
from recollect.transfer.formats import ImportName
from recollect.transfer.formats.jsonl import begins_with_lines
from recollect.transfer.model import Strategy
from recollect_cli.documents.model import Document
from recollect_cli.documents.reading import FoundFile, UnreadFile, find_files, is_document, read_document
from recollect_cli.documents.records import LinkTargets, write_records
from recollect_cli.files import opened
from recollect_cli.progress import metered

DOCUMENTS = "documents"
SourceName = ImportName | Literal["documents"]
"""The formats of the gateway, and documents, which are read here."""

_CHATS: tuple[tuple[bytes, ImportName], ...] = ((b'"chat_messages"', "claude"), (b'"mapping"', "chatgpt"))
"""A field of each assistant's export."""

_CHAT_FORMATS = frozenset(name for _, name in _CHATS)
_BEGINNING = 64 * 1024
"""Bytes in which such a field stands."""

LARGEST_ARCHIVE = 4_000_000_000
"""Bytes of conversations that are unpacked, at most."""

_ZIP = b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class ImportSource:
    """The bytes to send, their format, and the strategy that fits them (None: that of the format).

    `unread`: files of a folder that were left out.
    """

    content: BufferedReader
    format: ImportName
    strategy: Strategy | None = None
    unread: list[UnreadFile] = field(default_factory=list)


@contextmanager
def import_source(file: str, format: SourceName | None, format_of_name: Callable[[], str]) -> Iterator[ImportSource]:
    """What to send of a file or folder; `format` None: by its beginning, else by its name.

    Raises InvalidInput for what cannot be read.
    """
    if format == DOCUMENTS or (format is None and is_document(file)):
        with _documents(Path(file)) as source:
            yield source
        return
    with opened(file) as content:
        if content.peek()[: len(_ZIP)] == _ZIP:
            with _archived(file, format) as source:
                yield source
        else:
            chosen = cast(ImportName, format) if format else _guessed(file, content.peek(), format_of_name)
            yield ImportSource(content, chosen)


def _guessed(file: str, beginning: bytes, format_of_name: Callable[[], str]) -> ImportName:
    named = cast(ImportName, format_of_name())
    if named != "json":
        return named
    if begins_with_lines(beginning):
        return "jsonl"  # The official server's old memory.json holds lines, despite its name.
    return _chat(beginning) if Path(file).name.startswith("conversations") else named


def _chat(beginning: bytes) -> ImportName:
    return next((name for mark, name in _CHATS if mark in beginning), "json")


@contextmanager
def _archived(file: str, format: SourceName | None) -> Iterator[ImportSource]:
    """The conversations of an assistant's archive."""
    with _temporary() as (target, reopened):
        try:
            with ZipFile(file) as archive:
                _unpack(archive, target)
        except (BadZipFile, FileNotFoundError, NotImplementedError, RuntimeError) as error:
            raise InvalidInput(f"{file}: no archive that can be read: {error}") from None
        with reopened() as content:
            chosen = format or _chat(content.peek(_BEGINNING))
            if chosen not in _CHAT_FORMATS:
                raise InvalidInput(f"{file}: no archive of {' or '.join(sorted(_CHAT_FORMATS))}")
            yield ImportSource(content, chosen)


def _unpack(archive: ZipFile, target: IO[bytes]) -> None:
    """Write the lists of conversations of an archive, of which large ones have several, as one list."""
    names = sorted(name for name in archive.namelist() if Path(name).match("conversations*.json"))
    if not names:
        raise InvalidInput(f"{archive.filename}: has no conversations.json")
    if sum(archive.getinfo(name).file_size for name in names) > LARGEST_ARCHIVE:
        raise InvalidInput(f"{archive.filename}: its conversations have more than {LARGEST_ARCHIVE // 10**9} GB")
    for number, name in enumerate(names):
        with archive.open(name) as member:
            if number == 0:
                shutil.copyfileobj(member, target)
            else:
                _append_list(member, target)


def _append_list(member: IO[bytes], target: IO[bytes]) -> None:
    """Append the items of a list to the list with which the target ends."""
    beginning = member.read(_BEGINNING).lstrip()
    if beginning[:1] != b"[" or beginning[1:].lstrip()[:1] in (b"]", b""):
        return
    end = target.seek(0, 2)
    target.seek(max(0, end - _BEGINNING))
    tail = target.read()
    target.seek(end - len(tail) + tail.rfind(b"]"))
    target.truncate()
    target.write(b"," + beginning[1:])
    shutil.copyfileobj(member, target)


@contextmanager
def _documents(root: Path) -> Iterator[ImportSource]:
    """The documents of a folder, or one, as a file of records."""
    if not root.exists():
        raise InvalidInput(f"{root}: no such file or folder")
    files, unread = find_files(root), list[UnreadFile]()
    with _temporary() as (target, reopened):
        if not write_records(target, _read(files, unread), LinkTargets(files)):
            reasons = "; ".join(f"{file.relative_path}: {file.reason}" for file in unread[:5])
            raise InvalidInput(f"{root}: no document could be read ({reasons})")
        with reopened() as content:
            yield ImportSource(content, "json", Strategy.REPLACE, unread)


def _read(files: list[FoundFile], unread: list[UnreadFile]) -> Iterator[tuple[FoundFile, Document]]:
    """The documents of files, one after another; those that cannot be read go to `unread`."""
    with metered("reading", len(files), item="files", every=1_000) as meter:
        for number, file in enumerate(files, 1):
            document = read_document(file)
            if isinstance(document, UnreadFile):
                unread.append(document)
            else:
                yield file, document
            meter.advance(number, number)


@contextmanager
def _temporary() -> Iterator[tuple[IO[bytes], Callable[[], BufferedReader]]]:
    """A file that is deleted afterwards, to be written, and how it is opened again to be read."""
    with NamedTemporaryFile(suffix=".json") as target:

        def reopened() -> BufferedReader:
            target.flush()
            return BufferedReader(FileIO(target.name), buffer_size=_BEGINNING)

        yield target, reopened
