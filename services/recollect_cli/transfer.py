"""`recollect import` and `recollect export`: memories in and out, as the official memory server's memory.jsonl."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO
from urllib.parse import quote

import msgspec
from cyclopts import Parameter

from recollect.errors import InvalidInput, RecollectError, Unavailable
from recollect.graphs.model import graph_name
from recollect.transfer.jsonl import FACTS_HEADER, MEDIA_TYPE
from recollect.transfer.model import BrokenLine
from recollect.transfer.packets import Packet, read_packets
from recollect_cli.gateway import ApiKey, Gateway, Url, connected
from recollect_cli.progress import Meter, metered

STDIO = "-"

Source = Annotated[str, Parameter(allow_leading_hyphen=True)]


class _Answer(msgspec.Struct, frozen=True):
    """What the gateway says of one request."""

    class Broken(msgspec.Struct, frozen=True):
        line: int
        reason: str

    entities_created: int
    observations_added: int
    relations_created: int
    lines_skipped: int
    errors: list[Broken]


@dataclass(slots=True)
class Tally:
    """What became of a file so far."""

    entities: int = 0
    observations: int = 0
    relations: int = 0
    known: int = 0
    accepted: int = 0
    broken: int = 0

    def add(self, answer: _Answer) -> None:
        """Add what the gateway says of one request."""
        self.entities += answer.entities_created
        self.observations += answer.observations_added
        self.relations += answer.relations_created
        self.known += answer.lines_skipped

    def __str__(self) -> str:
        said = [
            f"{self.entities} new entities, {self.observations} new observations, {self.relations} new relations",
            f"{self.known} lines held nothing new" if self.known else "",
            f"{self.broken} lines were broken and left out" if self.broken else "",
        ]
        return "; ".join(filter(None, said))


def import_file(file: Source, /, *, graph: str, strict: bool = False, url: Url = None, api_key: ApiKey = None) -> None:
    """Import a memory.jsonl into a graph, which is made where it is not there.

    What is known already stays as it is, so that the same file may be imported again, also after an interruption.
    Broken lines are told by their numbers and left out.

    Parameters
    ----------
    file
        The file; - reads standard input.
    graph
        The graph to import into.
    strict
        Import nothing at all if one line is broken: the file is read twice.
    """
    path = f"/graphs/{graph_name(graph)}/import"
    with _opened(file, rewindable=strict) as source, connected(url, api_key) as gateway:
        if strict:
            _check(gateway, path, source, file)
        tally = _import(gateway, path, source)
    print(f"{graph}: {tally}")
    if tally.broken and (strict or not tally.accepted):
        raise InvalidInput(
            f"{_name(file)}: {'changed after it was checked' if strict else 'holds no line of a memory'}"
        )


def export_file(
    file: Source = STDIO, /, *, graph: str, as_of: str | None = None, url: Url = None, api_key: ApiKey = None
) -> None:
    """Export a graph as a memory.jsonl: entities, then relations, all as of one moment.

    Parameters
    ----------
    file
        The file to write, whole or not at all; - writes to standard output.
    graph
        The graph to export.
    as_of
        Export it as it was: a revision such as 42, or a time such as 2027-01-31T12:00:00Z.
    """
    path = f"/graphs/{graph_name(graph)}/export{f'?as_of={quote(as_of)}' if as_of else ''}"
    try:
        with (
            connected(url, api_key) as gateway,
            gateway.download(path, media_type=MEDIA_TYPE) as answer,
            _created(file) as target,
        ):
            _copy(answer.iter_bytes(), target)
    except Unavailable as error:
        raise Unavailable(f"{error} The export was not finished; run the command again") from error
    if int(answer.headers.get(FACTS_HEADER, 0)):
        print(f"{answer.headers[FACTS_HEADER]} facts were left out: this format holds entities", file=sys.stderr)


def _check(gateway: Gateway, path: str, source: BinaryIO, file: str) -> None:
    """Read the file once without writing anything; raises InvalidInput if a line is broken."""
    tally = Tally()
    with metered("checking", _size(source)) as meter:
        for packet in read_packets(source):
            _count(tally, packet, _post(gateway, path, packet, check="true"), meter)
    if tally.broken:
        raise InvalidInput(f"{_name(file)}: {tally.broken} lines are broken; nothing was imported")
    source.seek(0)


def _import(gateway: Gateway, path: str, source: BinaryIO) -> Tally:
    """Send the whole file, packet by packet."""
    tally, lines = Tally(), 0
    with metered("importing", _size(source)) as meter:
        try:
            for packet in read_packets(source):
                _count(tally, packet, _post(gateway, path, packet), meter)
                lines = packet.lines_read
        except Unavailable as error:
            raise Unavailable(f"{error} {_how_far(lines)}") from error
        except KeyboardInterrupt:
            meter.say(f"Stopped. {_how_far(lines)}")
            raise
    return tally


def _how_far(lines: int) -> str:
    return f"Lines up to {lines} are imported; run the command again to go on"


def _post(gateway: Gateway, path: str, packet: Packet, **query: str) -> _Answer:
    return msgspec.json.decode(gateway.post(path, packet.body, media_type=MEDIA_TYPE, **query), type=_Answer)


def _count(tally: Tally, packet: Packet, answer: _Answer, meter: Meter) -> None:
    tally.add(answer)
    refused = [BrokenLine(packet.numbers[error.line - 1], error.reason) for error in answer.errors]
    broken = sorted((*packet.broken, *refused), key=lambda line: line.number)
    for line in broken:
        meter.say(f"line {line.number}: {line.reason}")
    tally.broken += len(broken)
    tally.accepted += len(packet.numbers) - len(refused)
    meter.advance(packet.lines_read, packet.bytes_read)


def _copy(chunks: Iterator[bytes], target: BinaryIO) -> None:
    lines = size = 0
    with metered("exporting") as meter:
        for chunk in chunks:
            target.write(chunk)
            lines, size = lines + chunk.count(b"\n"), size + len(chunk)
            meter.advance(lines, size)


@contextmanager
def _opened(file: str, *, rewindable: bool) -> Iterator[BinaryIO]:
    """The file to read; a copy of what can be read only once, if it must be read twice."""
    if file == STDIO:
        source = sys.stdin.buffer
    else:
        try:
            source = Path(file).open("rb")  # noqa: SIM115 - closed below
        except OSError as error:
            raise _plain(error, file) from error
    with source:
        if source.seekable() or not rewindable:
            yield source
            return
        with tempfile.TemporaryFile() as copy:
            shutil.copyfileobj(source, copy)
            copy.seek(0)
            yield copy


@contextmanager
def _created(file: str) -> Iterator[BinaryIO]:
    """The file to write, which takes its place when it is whole; standard output and devices are written straight."""
    path = Path(file).resolve()
    if file == STDIO:
        yield from _standard_output()
        return
    part = path.with_name(f".{path.name}.part") if path.is_file() or not path.exists() else path
    try:
        with part.open("wb") as target:
            yield target
        if part != path:
            part.replace(path)
    except OSError as error:
        raise _plain(error, file) from error
    finally:
        if part != path:
            part.unlink(missing_ok=True)


def _standard_output() -> Iterator[BinaryIO]:
    try:
        yield sys.stdout.buffer
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        raise _plain(error, "standard output") from error


def _size(source: BinaryIO) -> int | None:
    with suppress(OSError):
        return os.fstat(source.fileno()).st_size or None
    return None


def _name(file: str) -> str:
    return "standard input" if file == STDIO else file


def _plain(error: OSError, file: str) -> RecollectError:
    return InvalidInput(f"{_name(file)}: {error.strerror}")
