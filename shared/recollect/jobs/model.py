"""A job, the steps that it is done in, and what becomes of one that fails."""

import hashlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Self
from uuid import UUID

import msgspec

from recollect.errors import ErrorCode, ErrorKind, InvalidInput, RecollectError, Unavailable
from recollect.platform.db import Transaction
from recollect.settings import Settings

RUN_JOBS = "run_jobs"
"""The worker's job that takes turns at jobs."""

MAX_PENDING = 1_000
"""Jobs of one tenant that wait or run, at most (a few more if they are asked for at the same instant)."""

MOST_PENDING = 100
"""Jobs of a tenant beside which a sweep still starts one: it leaves room for what people ask for."""

MAX_CHUNK = 1_048_576
"""Bytes of one chunk of input or output, at most."""

MAX_ATTEMPTS = 8
"""How often one step is begun, at most, until its job has failed."""

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0

Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]
"""How a job stands."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands. `graph` is the name of its graph; `done` of `total` counts what its kind counts.

    `attempts` tells how often the step in hand was begun, `error_code` why it failed last, `lease` which claim is the
    holder's own. `arguments`, `cursor` and `result` hold numbers, ids and options: never stored text.
    """

    id: UUID
    graph_id: UUID | None
    graph: str | None
    kind: str
    arguments: dict[str, Any]
    cursor: dict[str, Any]
    result: dict[str, Any] | None
    status: str
    done: int
    total: int | None
    error_code: str | None
    error_message: str | None
    attempts: int
    cancel_requested: bool
    lease: UUID | None
    input_bytes: int
    output_bytes: int
    traceparent: str | None
    created_by: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None

    @property
    def is_finished(self) -> bool:
        """Whether nothing more will become of it."""
        return self.finished_at is not None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to make. A `unique` one is not made where an equal one is under way.

    A `held` one waits for its input, which is its own: it has no equal, unless `asked` tells what its input will say.
    Of `asked` a digest is kept and no more, since it may hold text.
    """

    kind: str
    graph_id: UUID | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    total: int | None = None
    unique: bool = True
    held: bool = False
    asked: bytes | None = None

    @property
    def digest(self) -> bytes | None:
        """What equal jobs have in common, 32 bytes; None for one that has no equal."""
        if not self.unique or (self.held and self.asked is None):
            return None
        same = (self.kind, self.graph_id, self.arguments, *([] if self.asked is None else [self.asked]))
        return hashlib.sha256(msgspec.json.encode(same, order="deterministic")).digest()


@dataclass(frozen=True, slots=True)
class Step:
    """What one step of a job comes to: the cursor to go on from, and how much of how much is done.

    `result` counts for the last step, which is `finished`. `output` is what the step adds to what the job leaves to be
    fetched, in chunks of 1 to MAX_CHUNK bytes.
    """

    cursor: dict[str, Any]
    done: int
    total: int | None = None
    finished: bool = False
    result: dict[str, Any] | None = None
    output: tuple[bytes, ...] = ()


StepFunction = Callable[[Transaction, Job], Awaitable[Step]]
"""One kind of job: does the next step from the job's cursor, in a transaction that also stores what the step comes to.

A step is bounded (seconds, not minutes), makes no network call, and has no effect outside of its transaction.
"""


@dataclass(frozen=True, slots=True)
class JobBounds:
    """How long a claim holds, how long a finished job is kept, and how much a tenant's jobs may run and store."""

    lease: timedelta
    retention: timedelta
    most_running: int
    most_bytes: int

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """As the settings say."""
        return cls(
            timedelta(seconds=settings.job_lease_seconds),
            timedelta(days=settings.job_retention_days),
            settings.jobs_per_tenant,
            settings.job_storage_bytes,
        )


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list. None leaves a field open."""

    graph_id: UUID | None = None
    kind: str | None = None
    status: str | None = None


class StepRefused(InvalidInput):
    """Raised by a step that can never succeed. Unlike other errors' its message is kept: no stored text in it."""


class LeaseLost(RecollectError):
    """Another worker has the job: nothing of this step may commit."""

    default_code = ErrorCode.BUSY


class PutOff(Exception):
    """A step that cannot be done yet, for a known reason: the job comes back after `wait`, and loses no attempt."""

    def __init__(self, reason: RecollectError, wait: timedelta) -> None:
        super().__init__(str(reason))
        self.reason, self.wait = reason, wait


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a step failed, fit to be kept and shown, and whether trying it again may help."""

    code: ErrorCode
    message: str
    again: bool


def failure_of(error: Exception) -> Failure:
    """What to keep of an error: its code, and a sentence that holds nothing of what was stored.

    What the job itself is to blame for fails at once; everything else, faults of ours included, is tried again: the
    step was rolled back.
    """
    match error:
        case StepRefused():
            return Failure(error.code, error.message, again=False)
        case RecollectError():
            again = error.kind in (ErrorKind.UNAVAILABLE, ErrorKind.INTERNAL)
            return Failure(error.code, _SENTENCES[error.kind], again)
        case TimeoutError():
            return Failure(ErrorCode.BUSY, _SENTENCES[Unavailable.kind], again=True)
    return Failure(ErrorCode.INTERNAL, _SENTENCES[ErrorKind.INTERNAL], again=True)


WORKER_LOST = Failure(
    ErrorCode.INTERNAL, "Each worker that tried its next step ended in the middle of it.", again=False
)


def wait_before(attempt: int) -> timedelta:
    """How long to wait after that many failures in a row: doubled each time, half of it left to chance.

    Chance keeps those that failed together from coming back together.
    """
    seconds = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (min(attempt, 30) - 1))
    return timedelta(seconds=seconds * random.uniform(0.5, 1))  # noqa: S311 - no secret


_SENTENCES = {
    ErrorKind.INVALID: "What it was asked to do cannot be accepted.",
    ErrorKind.UNAUTHENTICATED: "It may not do what it was asked to.",
    ErrorKind.FORBIDDEN: "It may not do what it was asked to.",
    ErrorKind.NOT_FOUND: "Something that it needs is not there.",
    ErrorKind.METHOD_NOT_ALLOWED: "It may not do what it was asked to.",
    ErrorKind.CONFLICT: "The present state of the graph does not allow it.",
    ErrorKind.TOO_LARGE: "It would go past a bound.",
    ErrorKind.UNAVAILABLE: "Something that it needs was away or busy.",
    ErrorKind.INTERNAL: "Something went wrong on our side.",
}
