"""An import that is all or nothing, or tried: the file as it is, by a job, which sees it whole."""

import sys
from collections.abc import Iterable
from uuid import UUID

import msgspec

from recollect.errors import InvalidInput, Unavailable
from recollect.printable import printable
from recollect.transfer.formats import Format
from recollect.transfer.model import PROBLEMS_TYPE, Strategy
from recollect_cli.gateway import Gateway
from recollect_cli.jobs import JobView, wait_for_job
from recollect_cli.progress import EVERY_LINES
from recollect_cli.upload import ImportTally


class ReportedProblem(msgspec.Struct, frozen=True):
    """Something that was not imported: its place in the file, and why."""

    path: str
    reason: str


def import_by_job(
    gateway: Gateway,
    path: str,
    chunks: Iterable[bytes],
    kind: Format,
    strategy: Strategy | None,
    *,
    strict: bool,
    dry_run: bool,
) -> ImportTally:
    """What became of the file; what of it was not imported is told on the way.

    Raises InvalidInput where nothing was imported for what is in the file, Unavailable where that is not known.
    """
    query = {"format": kind.name} | ({"strategy": str(strategy)} if strategy else {})
    query |= {name: "true" for name, given in (("strict", strict), ("check", dry_run)) if given}
    try:
        answer = gateway.upload(path, chunks, media_type=kind.media_type, **query)
    except Unavailable as error:
        raise Unavailable(f"{error} `recollect jobs list` tells whether the import was begun") from error
    job = _ended(gateway, msgspec.json.decode(answer, type=JobView).id)
    if job.result is None:
        raise InvalidInput(job.error.message if job.error else f"The import was {job.status}")
    tally = _tally({name: int(bytes(value)) for name, value in job.result.items() if name != "dry_run"})
    if tally.broken:
        with gateway.download(f"/jobs/{job.id}/output", media_type=PROBLEMS_TYPE) as output:
            for line in output.iter_lines():
                problem = msgspec.json.decode(line, type=ReportedProblem)
                print(printable(f"{problem.path}: {problem.reason}"), file=sys.stderr)
    return tally


def _ended(gateway: Gateway, job_id: UUID) -> JobView:
    on = f"`recollect jobs show {job_id} --wait` waits for it, `recollect jobs cancel {job_id}` ends it"
    try:
        return msgspec.json.decode(wait_for_job(gateway, job_id, every=EVERY_LINES), type=JobView)
    except Unavailable as error:
        raise Unavailable(f"{error} The import goes on: {on}") from error
    except KeyboardInterrupt:
        print(f"The import goes on: {on}", file=sys.stderr)
        raise


def _tally(counts: dict[str, int]) -> ImportTally:
    def of(how: str) -> int:
        return sum(counts[f"{what}_{how}"] for what in ("entities", "facts", "relations"))

    return ImportTally(
        entities=counts["entities_created"],
        facts=counts["facts_created"],
        observations=counts["observations_added"],
        relations=counts["relations_created"],
        changed=of("updated"),
        known=of("skipped"),
        accepted=of("created") + of("updated") + of("skipped"),
        broken=counts["problems"],
    )
