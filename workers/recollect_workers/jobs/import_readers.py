"""Open readers of import files, which a worker keeps so that it need not read a file anew for each step."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from recollect.jobs import service as jobs
from recollect.jobs.model import Job
from recollect.postgres.transactions import Transaction
from recollect.transfer.batches import ImportBatch, read_batches
from recollect.transfer.dry_run import SeenRecords
from recollect.transfer.model import Strategy

READING_SECONDS = 5.0
"""How long one step reads towards the batch that it needs, before it ends without having reached it."""

MAX_READERS = 8
"""The most readers that a worker keeps by default."""


@dataclass(slots=True)
class ImportReader:
    """A reader of one job's file, at the last batch that was read.

    It outlives steps; the text that is not read yet is stored with the job.
    """

    job: Job
    seen: SeenRecords | None
    """The records of earlier batches; None where they are not needed."""
    batch: ImportBatch | None = None
    number: int = -1
    items: int = 0
    """How many items of the file are in the batches that were read."""
    idle: asyncio.TimerHandle | None = None
    """The timer that drops the reader when it is idle; None while a step reads."""
    _ordinal: int = 0
    _batches: Iterator[ImportBatch] = field(init=False)
    _tx: Transaction = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _fetching: asyncio.Task[bytes | None] | None = None
    _stopped: bool = False

    def __post_init__(self) -> None:
        """Start at the beginning of the file."""
        self._batches = read_batches(self.job.arguments["format"], self._chunks(), in_parts=reads_in_parts(self.job))

    async def read_to(self, tx: Transaction, number: int, seconds: float) -> bool:
        """Read on until `batch` is the one of that number, or None at the end of the file; False: not reached yet.

        It reads at least one batch, and goes on for `seconds`. A cancellation waits until nothing uses the transaction
        any more; the reader cannot be used after it.
        """
        self._tx, self._loop = tx, asyncio.get_running_loop()
        # In a thread: the parser pulls its chunks synchronously, and parsing must not block the worker's other work.
        reading = asyncio.ensure_future(asyncio.to_thread(self._read_to, number, seconds))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            self._stopped = True
            if self._fetching is not None:
                self._fetching.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            raise

    def _read_to(self, number: int, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.number < number:
            if self.seen is not None and self.batch is not None:
                self.seen.note(self.batch.items)
            self.batch, self.number = next(self._batches, None), self.number + 1
            self.items += 0 if self.batch is None else self.batch.read
            if self.batch is None:
                self.number = number
            elif self._stopped or (self.number < number and time.monotonic() >= deadline):
                return False
        return True

    def _chunks(self) -> Iterator[bytes]:
        while True:
            chunk = asyncio.run_coroutine_threadsafe(self._fetch(), self._loop).result()
            if chunk is None:
                return
            self._ordinal += 1
            yield chunk

    async def _fetch(self) -> bytes | None:
        if self._stopped:
            raise asyncio.CancelledError
        self._fetching = asyncio.create_task(jobs.read_input(self._tx, self.job, self._ordinal))
        return await self._fetching


def reads_in_parts(job: Job) -> bool:
    """Whether large entities of the file of a job come in parts: each reading must give the same batches.

    They do not under REPLACE, which removes what the record does not have, nor in a job that began before there were
    parts.
    """
    is_of_before = "batches" in job.cursor and "parts" not in job.cursor
    return not is_of_before and job.arguments["strategy"] != Strategy.REPLACE


class ImportReaders:
    """Readers by job: `most` at once, each until it was idle for `idle_seconds`.

    Where there is no room for another, the one that was idle for longest is dropped: the next turn of its job reads the
    file anew, however long that takes. `most` is greater than the number of concurrent turns, so that no reader is
    dropped in the middle of its turn.
    """

    def __init__(
        self, *, idle_seconds: float, most: int = MAX_READERS, reading_seconds: float = READING_SECONDS
    ) -> None:
        self._readers: dict[UUID, ImportReader] = {}  # The most recently used one comes last.
        self._idle_seconds, self._most, self._reading_seconds = idle_seconds, most, reading_seconds

    def __len__(self) -> int:
        """How many readers there are."""
        return len(self._readers)

    async def read(self, tx: Transaction, job: Job, number: int, seen: SeenRecords | None) -> ImportReader | None:
        """The reader of the job's file at the batch of that number; None: not reached yet. Raises as `read_batches`.

        A file is read from its beginning where its reader is beyond that batch, or does not match `seen`: one notes the
        records of earlier batches, and the other does not.
        """
        reader = self._take(job, number, seen)
        try:
            has_arrived = await reader.read_to(tx, number, self._reading_seconds)
        except BaseException:
            self.forget(job)
            raise
        if self._readers.get(job.id) is reader:
            self._readers[job.id] = self._readers.pop(job.id)
            reader.idle = asyncio.get_running_loop().call_later(self._idle_seconds, self.forget, job)
        return reader if has_arrived else None

    def forget(self, job: Job) -> None:
        """Drop the reader of a job, if there is one."""
        reader = self._readers.pop(job.id, None)
        if reader is not None and reader.idle is not None:
            reader.idle.cancel()

    def _take(self, job: Job, number: int, seen: SeenRecords | None) -> ImportReader:
        reader = self._readers.get(job.id)
        if reader is not None and reader.number <= number and (reader.seen is None) == (seen is None):
            if reader.idle is not None:
                reader.idle.cancel()
                reader.idle = None
            return reader
        self.forget(job)
        idle_jobs = [idle.job for idle in self._readers.values() if idle.idle is not None]
        for idle_job in idle_jobs[: max(len(self._readers) + 1 - self._most, 0)]:
            self.forget(idle_job)
        self._readers[job.id] = reader = ImportReader(job, seen)
        return reader
