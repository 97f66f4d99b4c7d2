"""`recollect import` and `recollect export`: import and export memories in every format, by jobs of the gateway."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from io import BufferedReader
from pathlib import Path
from typing import Annotated, BinaryIO
from uuid import UUID

import msgspec
from cyclopts import Parameter

from recollect.errors import InvalidInput, RecollectError, Unavailable
from recollect.graph.graphs.model import graph_name
from recollect.text.control_characters import printable
from recollect.transfer.formats import FORMATS, IMPORTED, READERS, Format, FormatName, format_named
from recollect.transfer.model import PROBLEMS_TYPE, Strategy
from recollect_cli.files import STDIO, created, name_of, size_of
from recollect_cli.following import JSON, JobView, Work, follow
from recollect_cli.gateway import ApiKey, Gateway, Url, connected
from recollect_cli.import_sources import ImportSource, SourceName, import_source
from recollect_cli.import_tally import ImportTally
from recollect_cli.progress import MEGABYTE, Meter, metered
from recollect_cli.tables import echo

CHUNK_BYTES = 64 * 1024
EVERY_MEGABYTES = 100
"""Where there is no terminal, the progress of sending or fetching a file is printed after every so many MB."""

EXPORT = Work("export", "exporting")
IMPORT = Work(
    "import",
    "importing",
    kept="What it has imported stays; run the command again to import the rest",
    mend="What it has imported stays; correct the file and run the command again to import the rest",
)
WHOLE_IMPORT = Work("import", "importing", mend="Correct the file and run the command again")
DRY_RUN = Work("dry run", "checking", mend=WHOLE_IMPORT.mend)

Source = Annotated[str, Parameter(allow_leading_hyphen=True)]
Written = FormatName | None
Read = SourceName | None


class ReportedProblem(msgspec.Struct, frozen=True):
    """A part of a file that was not imported: its position, and the reason."""

    path: str
    reason: str


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
    """Import a file or a folder into a graph. The graph is created if it does not exist.

    Parameters
    ----------
    file
        File to import, the archive of an assistant's export, or a folder of documents; - reads standard input.
    graph
        Graph to import into.
    format
        Format of the file; mem0, zep, chatgpt and claude are exports of these systems. Default: by the file's name and
        its beginning, else jsonl. A memory.json that contains lines is read as jsonl.
    strategy
        What to do with existing entities and facts. Default: merge for jsonl, replace for documents, else skip.
    strict
        Import nothing if any item is broken.
    dry_run
        Write nothing, and print what the import would do.
    """
    with import_source(file, format, lambda: _format(file, None, IMPORTED).name) as source:
        tally = _import(source, graph, strategy or source.strategy, strict, dry_run, (url, api_key))
    for unread in source.unread:
        print(printable(f"{unread.relative_path}: {unread.reason}"), file=sys.stderr)
    item = "lines" if source.format == "jsonl" and strategy is None else "items"
    print(f"{graph}: {tally.summary(item)}{' (nothing was written)' if dry_run else ''}")
    if tally.broken and not tally.accepted:
        raise InvalidInput(f"{name_of(file)} contains no {item.removesuffix('s')} that can be imported")
    if tally.broken or source.unread:
        raise SystemExit(1)


def _import(
    source: ImportSource,
    graph: str,
    strategy: Strategy | None,
    strict: bool,
    dry_run: bool,
    address: tuple[str | None, str | None],
) -> ImportTally:
    """Send a source, follow the job that imports it, and print what is broken."""
    query = {"format": source.format} | ({"strategy": str(strategy)} if strategy else {})
    query |= {flag: "true" for flag, is_set in (("strict", strict), ("check", dry_run)) if is_set}
    path, media_type = f"/graphs/{graph_name(graph)}/imports", READERS[source.format].media_type
    work = DRY_RUN if dry_run else WHOLE_IMPORT if strict or strategy is Strategy.FAIL else IMPORT
    with connected(*address) as gateway:
        job = follow(gateway, _upload(gateway, path, source.content, media_type, query), work)
        tally = ImportTally.of(job.result or {})
        _print_problems(gateway, job, tally.broken)
    return tally


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
    """Export one revision of a graph to a file.

    Parameters
    ----------
    file
        File to write, complete or not at all; - writes to standard output.
    graph
        Graph to export.
    format
        Format of the file. Default: by the ending of the file's name; jsonl where it has none, and on standard output.
    as_of
        Revision, such as 42, or time, such as 2027-01-31T12:00:00Z, to export. Default: the newest revision.
    """
    kind = _export_format(file, format)
    body = msgspec.json.encode({"format": kind.name} | ({"as_of": as_of} if as_of else {}))
    with connected(url, api_key) as gateway, ExitStack() as stack, created(file) as target:
        answer = gateway.post(f"/graphs/{graph_name(graph)}/exports", body, media_type=JSON)
        job = follow(gateway, msgspec.json.decode(answer, type=JobView).id, EXPORT)
        # Also where the download broke off: run again, this command makes another export.
        stack.callback(_delete_output, gateway, job)
        _fetch(gateway, job, kind.media_type, target)
    if file != STDIO:
        echo(f"{graph} was exported to {file} ({job.output_bytes} bytes).")
    if facts := int(bytes((job.result or {}).get("facts_left_out", b"0"))):
        left_out = "1 fact was" if facts == 1 else f"{facts} facts were"
        print(f"{left_out} left out: this format contains only entities", file=sys.stderr)


def _export_format(file: str, option: str | None) -> Format:
    """As `_format`; an ending that no format has is refused, since not every format has all of a graph."""
    ending = Path(file).suffix
    if option is None and ending and not any(ending.lower() in kind.suffixes for kind in FORMATS.values()):
        raise InvalidInput(f"No format has the ending {ending}. Set one with --format ({', '.join(FORMATS)}).")
    return _format(file, option, tuple(FORMATS))


def _format(file: str, option: str | None, known: Sequence[str]) -> Format:
    """The format of the option, else the one of the file's name."""
    guesses = [name for name in FORMATS if Path(file).suffix.lower() in FORMATS[name].suffixes]
    if option is None and guesses and guesses[0] not in known:
        raise SystemExit(
            f"{guesses[0]} can only be exported. Set the format of the file with --format ({', '.join(known)})."
        )
    return format_named(option or (guesses[0] if guesses else "jsonl"))


class _UploadBody:
    """A file's bytes as they are read and sent, with a meter that shows the progress."""

    def __init__(self, source: BufferedReader, meter: Meter) -> None:
        self._source, self._meter = source, meter
        self.is_sent = False

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        while chunk := self._source.read1(CHUNK_BYTES):
            yield chunk
            size += len(chunk)
            self._meter.advance(size // MEGABYTE, size)
        self.is_sent = True


def _upload(gateway: Gateway, path: str, source: BufferedReader, media_type: str, query: dict[str, str]) -> UUID:
    """Send a file; returns the id of the job that imports it.

    Raises the refusals of the gateway, and Unavailable where it does not answer. A job begins once all of it is sent.
    """
    with metered("sending", size_of(source), item="MB", every=EVERY_MEGABYTES) as meter:
        body = _UploadBody(source, meter)
        try:
            source.peek()  # Wait for the first bytes here: the gateway waits only a while for a body.
            answer = gateway.upload(path, body, media_type=media_type, **query)
        except Unavailable as error:
            raise Unavailable(f"{error} {_next_step(body)}") from error
        except KeyboardInterrupt:
            print(f"Stopped. {_next_step(body)}", file=sys.stderr)
            raise
    return msgspec.json.decode(answer, type=JobView).id


def _next_step(body: _UploadBody) -> str:
    if body.is_sent:
        return "`recollect jobs list` shows whether the import has started"
    return "Nothing was imported; run the command again"


def _print_problems(gateway: Gateway, job: JobView, broken: int) -> None:
    """Print what was not imported, a line each, on stderr. The job's output lists some of it; the rest is counted."""
    if not broken:
        return
    listed = 0
    with gateway.download(f"/jobs/{job.id}/output", media_type=PROBLEMS_TYPE) as output:
        for line in output.iter_lines():
            problem = msgspec.json.decode(line, type=ReportedProblem)
            print(printable(f"{problem.path}: {problem.reason}"), file=sys.stderr)
            listed += 1
    if broken > listed:
        print(f"and {broken - listed} more", file=sys.stderr)


def _delete_output(gateway: Gateway, job: JobView) -> None:
    """Delete the job's output. Where that fails, the output expires in time."""
    with suppress(RecollectError):
        gateway.send("DELETE", f"/jobs/{job.id}/output")


def _fetch(gateway: Gateway, job: JobView, media_type: str, target: BinaryIO) -> None:
    """Write the job's output to the target; raises Unavailable where the download breaks off."""
    size = 0
    try:
        with (
            gateway.download(f"/jobs/{job.id}/output", media_type=media_type) as output,
            metered("fetching", job.output_bytes, item="MB", every=EVERY_MEGABYTES) as meter,
        ):
            for chunk in output.iter_bytes():
                target.write(chunk)
                size += len(chunk)
                meter.advance(size // MEGABYTE, size)
    except Unavailable as error:
        raise Unavailable(f"{error} The file was not fetched completely; run the command again") from error
