"""The places that a worker keeps in the files of imports: it saves reading them anew for each step."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from recollect.jobs import service as jobs
from recollect.jobs.model import Job
from recollect.platform.transactions import Transaction
from recollect.transfer.batches import ImportBatch, read_batches
from recollect.transfer.dry_run import SeenRecords

READING_SECONDS = 5.0
"""How long one step reads on to the batch that it needs, before it says that it is still at it."""

MAX_READERS = 8
"""Files that a worker keeps its place in, at most, where no other number is given."""


@dataclass(slots=True)
class ImportReader:
    """A place in the file of one job: the last batch that was read from it, and what follows.

    It outlives steps; only the text that is not read yet is with the job.
    """

    job: Job
    seen: SeenRecords | None
    """What the batches before hold; None where that is of no interest."""
    batch: ImportBatch | None = None
    number: int = -1
    items: int = 0
    """How many items of the file stand in the batches that were read."""
    idle: asyncio.TimerHandle | None = None
    """Lets go of it; None while a step reads."""
    _ordinal: int = 0
    _batches: Iterator[ImportBatch] = field(init=False)
    _tx: Transaction = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _fetching: asyncio.Task[bytes | None] | None = None
    _stopped: bool = False

    def __post_init__(self) -> None:
        """Begin at the file's beginning."""
        self._batches = read_batches(self.job.arguments["format"], self._chunks())

    async def read_to(self, tx: Transaction, number: int, seconds: float) -> bool:
        """Read on until `batch` is the one of that number, or None for the file's end; False: not yet.

        At least one batch is read, and as many as take so many seconds. Cancelled it ends when nothing of it uses the
        transaction any more, and is of no use then.
        """
        self._tx, self._loop = tx, asyncio.get_running_loop()
        # On a thread: the parser wants its chunks at once, and parsing must not keep the worker's other work waiting.
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
        give_up = time.monotonic() + seconds
        while self.number < number:
            if self.seen is not None and self.batch is not None:
                self.seen.note(self.batch.items)
            self.batch, self.number = next(self._batches, None), self.number + 1
            self.items += 0 if self.batch is None else self.batch.read
            if self.batch is None:
                self.number = number
            elif self._stopped or (self.number < number and time.monotonic() >= give_up):
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


class ImportReaders:
    """The readers that are kept, by job: `most` at once, each until nobody has used it for `idle_seconds`.

    Where there is no room for another, the one that nobody has used for longest is let go of: the next turn of its job
    reads the file anew, for as long as that takes. `most` is more than the turns that are taken at once, so that none
    is let go of in the middle of its turn.
    """

    def __init__(
        self, *, idle_seconds: float, most: int = MAX_READERS, reading_seconds: float = READING_SECONDS
    ) -> None:
        self._kept: dict[UUID, ImportReader] = {}  # The one that was used last comes last.
        self._idle_seconds, self._most, self._reading_seconds = idle_seconds, most, reading_seconds

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._kept)

    async def read(self, tx: Transaction, job: Job, number: int, seen: SeenRecords | None) -> ImportReader | None:
        """The file, read to the batch of that number; None: not yet. Raises what `read_batches` does.

        A file that was read without noting, or further, is begun anew.
        """
        reader = self._take(job, number, seen)
        try:
            arrived = await reader.read_to(tx, number, self._reading_seconds)
        except BaseException:
            self.forget(job)
            raise
        if self._kept.get(job.id) is reader:
            self._kept[job.id] = self._kept.pop(job.id)
            reader.idle = asyncio.get_running_loop().call_later(self._idle_seconds, self.forget, job)
        return reader if arrived else None

    def forget(self, job: Job) -> None:
        """Let go of a job's file, where it is kept."""
        reader = self._kept.pop(job.id, None)
        if reader is not None and reader.idle is not None:
            reader.idle.cancel()

    def _take(self, job: Job, number: int, seen: SeenRecords | None) -> ImportReader:
        reader = self._kept.get(job.id)
        if reader is not None and reader.number <= number and (reader.seen is None) == (seen is None):
            if reader.idle is not None:
                reader.idle.cancel()
                reader.idle = None
            return reader
        self.forget(job)
        idle = [kept.job for kept in self._kept.values() if kept.idle is not None]
        for unused in idle[: max(len(self._kept) + 1 - self._most, 0)]:
            self.forget(unused)
        self._kept[job.id] = reader = ImportReader(job, seen)
        return reader
