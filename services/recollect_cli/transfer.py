"""`recollect import` and `recollect export`: memories in and out, in each of the formats.

A file is read here, in whatever format, and sent in batches, JSON lines as they are; by a job it goes as a whole.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Annotated, BinaryIO
from urllib.parse import quote

from cyclopts import Parameter

from recollect.errors import InvalidInput, RecollectError, Unavailable
from recollect.graph.graphs.model import graph_name
from recollect.transfer.formats import FORMATS, IMPORTED, Format, FormatName, ReadableName, format_named
from recollect.transfer.formats.jsonl import begins_with_lines
from recollect.transfer.model import FACTS_HEADER, Strategy
from recollect.transfer.upload_chunks import UploadChunk
from recollect_cli.gateway import ApiKey, Url, connected
from recollect_cli.import_job import import_by_job
from recollect_cli.progress import metered
from recollect_cli.standard_input import standard_input
from recollect_cli.upload import ImportTally, Upload, chunks_of, count

STDIO = "-"

Source = Annotated[str, Parameter(allow_leading_hyphen=True)]
Written = FormatName | None
Read = ReadableName | None


def import_file(
    file: Source,
    /,
    *,
    graph: str,
    format: Read = None,
    strategy: Strategy | None = None,
    strict: bool = False,
    dry_run: bool = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Import a file into a graph, which is made where it is not there.

    The same file may be imported again, also after an interruption: what is known already is not doubled. What is
    broken is told by its place and left out, the rest is imported; the command ends with 1 then.

    Parameters
    ----------
    file
        The file; - reads standard input.
    graph
        The graph to import into.
    format
        json, jsonl, csv or graphml. Default: what the file's name says, else jsonl; so is a memory.json of lines.
    strategy
        What becomes of entities and facts that are there: skip, replace, merge, or fail. Default: merge of jsonl, else
        skip.
    strict
        Import nothing at all if anything is broken. This and the strategy fail import by a job.
    dry_run
        Write nothing, make no graph, and say what would become of it: by a job.
    """
    kind = _format(file, format, IMPORTED)
    with _opened(file) as source, connected(url, api_key) as gateway:
        if format is None and kind.name == "json" and begins_with_lines(source.peek()):
            kind = format_named("jsonl")  # the official server's memory.json of old: lines, whatever its name says
        sending = Upload(gateway, f"/graphs/{graph_name(graph)}/import", kind, strategy)
        if strict or dry_run or strategy is Strategy.FAIL:
            path = f"/graphs/{graph_name(graph)}/imports"
            tally = import_by_job(gateway, path, chunks_of(source), kind, strategy, strict=strict, dry_run=dry_run)
        else:
            tally = _import(sending, source)
    print(f"{graph}: {tally.summary(sending.item)}{' (nothing was written)' if dry_run else ''}")
    if tally.broken and not tally.accepted:
        raise InvalidInput(f"{_name(file)}: holds no {sending.one} that can be imported")
    if tally.broken:
        raise SystemExit(1)


def export_file(
    file: Source = STDIO,
    /,
    *,
    graph: str,
    format: Written = None,
    as_of: str | None = None,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Export a graph: entities, then relations, all as of one moment.

    Parameters
    ----------
    file
        The file to write, whole or not at all; - writes to standard output.
    graph
        The graph to export.
    format
        json, jsonl, csv, graphml, gexf, dot, markdown or mermaid. Default: what the file's name says, else jsonl.
    as_of
        Export it as it was: a revision such as 42, or a time such as 2027-01-31T12:00:00Z.
    """
    kind = _format(file, format, tuple(FORMATS))
    query = f"?format={kind.name}{f'&as_of={quote(as_of)}' if as_of else ''}"
    try:
        with (
            connected(url, api_key) as gateway,
            gateway.download(f"/graphs/{graph_name(graph)}/export{query}", media_type=kind.media_type) as answer,
            _created(file) as target,
        ):
            _copy(answer.iter_bytes(), target)
    except Unavailable as error:
        raise Unavailable(f"{error} The export was not finished; run the command again") from error
    if facts := int(answer.headers.get(FACTS_HEADER, 0)):
        left_out = "1 fact was" if facts == 1 else f"{facts} facts were"
        print(f"{left_out} left out: this format holds entities", file=sys.stderr)


def _format(file: str, named: str | None, known: Sequence[str]) -> Format:
    """The format that is named, else the one that the file's name tells."""
    told = [name for name in FORMATS if Path(file).suffix.lower() in FORMATS[name].suffixes]
    if named is None and told and told[0] not in known:
        raise SystemExit(f"{told[0]} can only be exported. Say with --format what the file is ({', '.join(known)}).")
    return format_named(named or (told[0] if told else "jsonl"))


def _import(sending: Upload, source: BinaryIO) -> ImportTally:
    """Send the whole file, part by part."""
    tally, done = ImportTally(), 0
    with metered("importing", _size(source)) as meter:
        try:
            for part in sending.parts(source):
                count(tally, part, sending.send(part), meter, source)
                done = part.lines_read if isinstance(part, UploadChunk) else done + len(part.items)
        except Unavailable as error:
            raise Unavailable(f"{error} {_how_far(sending, done)}") from error
        except KeyboardInterrupt:
            meter.say(f"Stopped. {_how_far(sending, done)}")
            raise
    return tally


def _how_far(sending: Upload, done: int) -> str:
    return f"{sending.item.title()} up to {done} are imported; run the command again to go on"


def _copy(chunks: Iterator[bytes], target: BinaryIO) -> None:
    lines = size = 0
    with metered("exporting") as meter:
        for chunk in chunks:
            target.write(chunk)
            lines, size = lines + chunk.count(b"\n"), size + len(chunk)
            meter.advance(lines, size)


@contextmanager
def _opened(file: str) -> Iterator[BufferedReader]:
    """The file to read."""
    if file == STDIO:
        source = standard_input()
    else:
        try:
            source = Path(file).open("rb")  # noqa: SIM115 - closed below
        except OSError as error:
            raise _plain(error, file) from error
    with source:
        yield source


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
