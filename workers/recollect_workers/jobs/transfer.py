"""Graphs out to files and in from files of any size, a step at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

import msgspec

from recollect.errors import Conflict, InvalidInput, TooLarge
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Revision
from recollect.jobs.model import MAX_CHUNK, Job, StepRefused, StepResult
from recollect.platform.transactions import Transaction
from recollect.transfer import exports, file_jobs
from recollect.transfer import service as transfer
from recollect.transfer.batches import ImportBatch
from recollect.transfer.dry_run import SeenRecords, dry_run_items, find_concurrent_writes, require_none_added
from recollect.transfer.model import ImportProblem, ImportResult, Strategy
from recollect_workers.jobs.import_readers import ImportReader, ImportReaders

MAX_TOLD = 10_000
"""Things that were not imported which an import tells one by one, at most; the rest is counted."""

_END = 2**62
"""More batches than any file has."""

COUNTED = tuple(each.name for each in fields(ImportResult) if each.name != "problems")
_NOTHING = dict.fromkeys((*COUNTED, "problems"), 0)


async def export_graph(tx: Transaction, job: Job) -> StepResult:
    """The next piece of the file. Done and total count nodes and relations."""
    export = await file_jobs.read_export(tx, job)
    step = await exports.export_step_beside(tx, export, file_jobs.cursor_of(job.cursor))
    data, done = step.text.encode(), job.done + step.items
    output = tuple(data[start : start + MAX_CHUNK] for start in range(0, len(data), MAX_CHUNK))
    if step.next is not None:
        total = None if job.total is None else max(job.total, done)
        return StepResult(file_jobs.stored_cursor(step.next), done, total, output=output)
    result = {"revision": export.snapshot.revision, "facts_left_out": export.facts_left_out}
    return StepResult({}, done, done, finished=True, result=result, output=output)


class Imports:
    """Imports of this worker. A batch is the same each time its file is read: the cursor is how many are written.

    A worker keeps its place in the files that it reads, which saves it from reading them anew each step; that is all
    that is kept, and another worker, or this one after a step that failed, reads from the beginning. A step that does
    not reach its batch leaves the job as it was; the next goes on reading.
    """

    def __init__(self, readers: ImportReaders) -> None:
        self._readers = readers

    async def step(self, tx: Transaction, job: Job) -> StepResult:
        """Write the next batch, in one revision, or try it. Done of total counts items, which are counted first.

        One of a file that is tried first counts by halves: when it is tried, and when it is written.
        """
        if job.graph_id is None and not job.arguments.get("check"):
            raise StepRefused("A file is imported into a graph.")
        if job.total is None and "uncounted" not in job.cursor:
            job = await self._count(tx, job)
            if job.total is None and "uncounted" not in job.cursor:
                return StepResult(job.cursor, job.done, None)
        trying = file_jobs.needs_dry_run(job) and "tried" not in job.cursor
        reader = await self._read(tx, job, job.cursor.get("batches", 0), SeenRecords() if trying else None)
        if reader is None:
            return StepResult(job.cursor, job.done, job.total)
        if trying:
            return await self._try(tx, job, reader)
        assert job.graph_id is not None, "a check writes nothing"
        async with graphs.write_graph_of(tx, job.graph_id, "import") as revision:
            return await self._write(tx, job, revision, reader)

    async def _count(self, tx: Transaction, job: Job) -> Job:
        """The job with the number of its file's items; without, where it is not known yet, or the file breaks off."""
        try:
            counted = await self._readers.read(tx, job, _END, None)
        except (InvalidInput, TooLarge):  # What stands before is imported: its place is told when it is reached.
            return replace(job, cursor={**job.cursor, "uncounted": True})
        if counted is None:
            return job
        self._readers.forget(job)
        return replace(job, total=counted.items)

    async def _read(self, tx: Transaction, job: Job, number: int, seen: SeenRecords | None) -> ImportReader | None:
        """The file, read to the batch of that number; None: not yet."""
        try:
            return await self._readers.read(tx, job, number, seen)
        except (InvalidInput, TooLarge) as error:  # None of the file's own text is in it.
            raise StepRefused(f"{error.path or 'file'}: {error.message}", path=error.path) from None

    async def _try(self, tx: Transaction, job: Job, reader: ImportReader) -> StepResult:
        """Find what the next batch would come to; behind the last, begin to write the file or end a check."""
        assert reader.seen is not None
        counts = job.cursor.get("counts", {})
        if reader.batch is None:
            if job.arguments.get("check"):
                self._readers.forget(job)
                return StepResult({}, job.done, job.done, finished=True, result={**_NOTHING, **counts, "dry_run": True})
            return await self._begin(tx, job, reader.seen)
        # Read before anything is tried: what others make and is not seen there is later than this.
        since = job.cursor.get("since")
        if since is None and job.graph_id is not None:
            since = (await graphs.last_written_at(tx, await graphs.graph_of(tx, job.graph_id))).isoformat()
        imported = ImportResult(problems=reader.batch.problems)
        with _refusals():
            imported += await dry_run_items(tx, job.graph_id, reader.batch.items, _strategy(job), reader.seen)
        if imported.problems and job.arguments.get("strict") and not job.arguments.get("check"):
            raise StepRefused(f"{imported.problems[0].where} cannot be imported, so nothing was imported")
        step = _counted(job, reader.batch, imported, told=bool(job.arguments.get("check")))
        return replace(step, cursor={**step.cursor, "since": since})

    async def _begin(self, tx: Transaction, job: Job, seen: SeenRecords) -> StepResult:
        """Write the first batch of a file that was tried, unless what it brings was made meanwhile."""
        assert job.graph_id is not None
        tried = replace(job, cursor={"tried": True, **_kept(job)})
        reader = await self._read(tx, tried, 0, None)
        if reader is None:
            return StepResult(job.cursor, job.done, job.total)
        async with graphs.write_graph_of(tx, job.graph_id, "import") as revision:
            if _strategy(job) is Strategy.FAIL and "since" in job.cursor:
                with _refusals():
                    await require_none_added(tx, revision, datetime.fromisoformat(job.cursor["since"]), seen)
            return await self._write(tx, tried, revision, reader)

    async def _write(self, tx: Transaction, job: Job, revision: Revision, reader: ImportReader) -> StepResult:
        batch = reader.batch
        if batch is None:
            self._readers.forget(job)
            result = {**_NOTHING, **job.cursor.get("counts", {})}
            return StepResult({}, job.done, job.done, finished=True, result=result)
        strategy, items, imported = _strategy(job), batch.items, ImportResult(problems=batch.problems)
        if strategy is Strategy.FAIL:  # nothing was there when the first batch was written
            meanwhile = await find_concurrent_writes(tx, revision, items)
            places = {problem.where for problem in meanwhile}
            items = tuple(item for item in items if item.where not in places)
            imported += ImportResult(problems=tuple(meanwhile))
        imported += await transfer.import_items(tx, revision, items, strategy)
        return _counted(job, batch, imported)


def _counted(job: Job, batch: ImportBatch, imported: ImportResult, *, told: bool = True) -> StepResult:
    """The step that a batch is: its counts beside those before, and what was not imported where that is `told`."""
    counts = job.cursor.get("counts", {})
    before: int = counts.get("problems", 0)
    counts = {name: counts.get(name, 0) + getattr(imported, name) for name in COUNTED} | {
        "problems": before + len(imported.problems)
    }
    output = _lines(imported.problems[: max(MAX_TOLD - before, 0)]) if told else ()
    gone = job.cursor.get("gone", 0) + batch.read
    done = gone // (2 if file_jobs.needs_dry_run(job) and not job.arguments.get("check") else 1)
    cursor = {**job.cursor, "batches": batch.number + 1, "counts": counts, "gone": gone}
    return StepResult(cursor, done, job.total, output=output)


def _kept(job: Job) -> dict[str, Any]:
    """What of the cursor of a file that was tried goes on when it is written."""
    return {name: job.cursor[name] for name in ("gone", "uncounted") if name in job.cursor}


def _strategy(job: Job) -> Strategy:
    return Strategy(job.arguments["strategy"])


@contextmanager
def _refusals() -> Iterator[None]:
    """A conflict as the reason why the job fails: its place, and nothing of what stands there."""
    try:
        yield
    except Conflict as error:
        said = "It is there already, or comes twice in the file" if error.path else error.message
        raise StepRefused(f"{error.path or 'file'}: {said}. Nothing was imported", code=error.code) from None


def _lines(problems: tuple[ImportProblem, ...]) -> tuple[bytes, ...]:
    """What was not imported, a JSON object a line, in chunks."""
    text = b"".join(msgspec.json.encode(_problem_line(problem)) + b"\n" for problem in problems)
    return tuple(text[start : start + MAX_CHUNK] for start in range(0, len(text), MAX_CHUNK))


def _problem_line(problem: ImportProblem) -> dict[str, Any]:
    return {"path": problem.where, "reason": problem.reason}
