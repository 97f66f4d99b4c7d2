"""Exports of graphs to files, and imports from files, of any size, a step at a time."""

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
from recollect.postgres.transactions import Transaction
from recollect.transfer import exports, file_jobs
from recollect.transfer import service as transfer
from recollect.transfer.batches import ImportBatch
from recollect.transfer.dry_run import SeenRecords, dry_run_items, require_none_added, without_concurrent_writes
from recollect.transfer.model import ImportProblem, ImportResult, Strategy
from recollect_workers.jobs.import_readers import ImportReader, ImportReaders, reads_in_parts

MAX_REPORTED = 10_000
"""The most problems that an import reports one by one; the rest is counted."""

_END = 2**62
"""More batches than any file has."""

COUNTED = tuple(field.name for field in fields(ImportResult) if field.name != "problems")
_NOTHING = dict.fromkeys((*COUNTED, "problems"), 0)


async def export_graph(tx: Transaction, job: Job) -> StepResult:
    """Write the next piece of the file. Done and total count nodes and relations."""
    export = await file_jobs.read_export(tx, job)
    step = await exports.export_step_at_replica(tx, export, file_jobs.cursor_of(job.cursor))
    data, done = step.text.encode(), job.done + step.items
    output = tuple(data[start : start + MAX_CHUNK] for start in range(0, len(data), MAX_CHUNK))
    if step.next is not None:
        total = None if job.total is None else max(job.total, done)
        return StepResult(file_jobs.stored_cursor(step.next), done, total, output=output)
    result = {"revision": export.snapshot.revision, "facts_left_out": export.facts_left_out}
    return StepResult({}, done, done, finished=True, result=result, output=output)


class Imports:
    """Imports of this worker. Batches are the same each time a file is read: the cursor is the number of those written.

    A worker keeps its readers, so that it need not read a file anew in each step. That is the only state in addition to
    the job: another worker, or this one after a failed step, reads from the beginning. A step that does not reach its
    batch leaves the job unchanged; the next goes on reading.
    """

    def __init__(self, readers: ImportReaders) -> None:
        self._readers = readers

    async def step(self, tx: Transaction, job: Job) -> StepResult:
        """Write the next batch, in one revision, or try it. Done and total count items; the total is counted first.

        An item of a file that is tried first counts by halves: when it is tried, and when it is written.
        """
        if job.graph_id is None and not job.arguments.get("check"):
            raise StepRefused("This job has no graph to import the file into.")
        if job.total is None and "uncounted" not in job.cursor:
            job = await self._count(tx, job)
            if job.total is None and "uncounted" not in job.cursor:
                return StepResult(job.cursor, job.done, None)
        is_trial = file_jobs.needs_dry_run(job) and "tried" not in job.cursor
        reader = await self._read(tx, job, job.cursor.get("batches", 0), SeenRecords() if is_trial else None)
        if reader is None:
            return StepResult(job.cursor, job.done, job.total)
        if is_trial:
            return await self._try(tx, job, reader)
        assert job.graph_id is not None, "a check writes nothing"
        async with graphs.write_graph_of(tx, job.graph_id, "import") as revision:
            return await self._write(tx, job, revision, reader)

    async def _count(self, tx: Transaction, job: Job) -> Job:
        """The job with the number of items in its file as total; without it where it is not known, or has an error."""
        try:
            reader = await self._readers.read(tx, job, _END, None)
        except (InvalidInput, TooLarge):  # Items before the error are imported, and it is reported when it is reached.
            return replace(job, cursor={**job.cursor, "uncounted": True})
        if reader is None:
            return job
        self._readers.forget(job)
        return replace(job, total=reader.items)

    async def _read(self, tx: Transaction, job: Job, number: int, seen: SeenRecords | None) -> ImportReader | None:
        """The reader of the file at the batch of that number; None: not reached yet."""
        try:
            return await self._readers.read(tx, job, number, seen)
        except (InvalidInput, TooLarge) as error:  # Its message holds no text of the file.
            raise StepRefused(f"{error.path or 'file'}: {error.message}", path=error.path) from None

    async def _try(self, tx: Transaction, job: Job, reader: ImportReader) -> StepResult:
        """Find the result of the next batch by a dry run; after the last, begin to write the file or end a check."""
        assert reader.seen is not None
        counts = job.cursor.get("counts", {})
        if reader.batch is None:
            if job.arguments.get("check"):
                self._readers.forget(job)
                return StepResult({}, job.done, job.done, finished=True, result={**_NOTHING, **counts, "dry_run": True})
            return await self._begin(tx, job, reader.seen)
        # Read before the first trial: writes of others that the trials do not see are later than this.
        since = job.cursor.get("since")
        if since is None and job.graph_id is not None:
            since = (await graphs.last_written_at(tx, await graphs.graph_of(tx, job.graph_id))).isoformat()
        imported = ImportResult(problems=reader.batch.problems)
        with _refusals():
            imported += await dry_run_items(tx, job.graph_id, reader.batch.items, _strategy(job), reader.seen)
        if imported.problems and job.arguments.get("strict") and not job.arguments.get("check"):
            raise StepRefused(f"{imported.problems[0].where} cannot be imported, so nothing was imported")
        step = _step_result(job, reader.batch, imported, reports_problems=bool(job.arguments.get("check")))
        return replace(step, cursor={**step.cursor, "since": since})

    async def _begin(self, tx: Transaction, job: Job, seen: SeenRecords) -> StepResult:
        """Write the first batch of a file that was tried, unless others have created its records since."""
        assert job.graph_id is not None
        tried = replace(job, cursor={"tried": True, **_lasting_cursor(job)})
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
        if strategy is Strategy.FAIL:  # None of the records existed when the first batch was written.
            accepted, conflicts = await without_concurrent_writes(tx, revision, items)
            items = tuple(accepted)
            imported += ImportResult(problems=tuple(conflicts))
        begun: int = job.cursor.get("begun", revision.number)
        job = replace(job, cursor={**job.cursor, "begun": begun})
        imported += await transfer.import_items(tx, revision, items, strategy, begun=begun)
        return _step_result(job, batch, imported)


def _step_result(job: Job, batch: ImportBatch, imported: ImportResult, *, reports_problems: bool = True) -> StepResult:
    """The result of the step of a batch: its counts added to those before, and its problems as output."""
    counts = job.cursor.get("counts", {})
    problems_before: int = counts.get("problems", 0)
    counts = {name: counts.get(name, 0) + getattr(imported, name) for name in COUNTED} | {
        "problems": problems_before + len(imported.problems)
    }
    reported = imported.problems[: max(MAX_REPORTED - problems_before, 0)] if reports_problems else ()
    items_read = job.cursor.get("items_read", 0) + batch.read
    done = items_read // (2 if file_jobs.needs_dry_run(job) and not job.arguments.get("check") else 1)
    cursor = {**job.cursor, "batches": batch.number + 1, "counts": counts, "items_read": items_read}
    if reads_in_parts(job):
        cursor["parts"] = True
    return StepResult(cursor, done, job.total, output=_lines(reported))


def _lasting_cursor(job: Job) -> dict[str, Any]:
    """The part of a tried file's cursor that stays when the file is written."""
    return {name: job.cursor[name] for name in ("items_read", "uncounted") if name in job.cursor}


def _strategy(job: Job) -> Strategy:
    return Strategy(job.arguments["strategy"])


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn a conflict into the reason why the job fails: it names the position, and none of the text there."""
    try:
        yield
    except Conflict as error:
        reason = "It exists already, or is in the file twice" if error.path else error.message
        raise StepRefused(f"{error.path or 'file'}: {reason}. Nothing was imported", code=error.code) from None


def _lines(problems: tuple[ImportProblem, ...]) -> tuple[bytes, ...]:
    """Problems as lines of JSON objects, in chunks."""
    text = b"".join(msgspec.json.encode(_problem_line(problem)) + b"\n" for problem in problems)
    return tuple(text[start : start + MAX_CHUNK] for start in range(0, len(text), MAX_CHUNK))


def _problem_line(problem: ImportProblem) -> dict[str, Any]:
    return {"path": problem.where, "reason": problem.reason}
