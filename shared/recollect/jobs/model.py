"""Jobs, their steps, and what happens when a step fails."""

import hashlib
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Self
from uuid import UUID

import msgspec

from recollect.errors import ErrorCode, ErrorKind, InvalidInput, QuotaExceeded, RecollectError, Unavailable
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings

EMBED_PASSAGES = "embed_passages"
"""The worker's job that gives passages their vectors and contextual terms."""

RUN_JOBS = "run_jobs"
"""The wake-up that has a worker look for due jobs."""

MAX_PENDING = 1_000
"""The most jobs of one tenant that wait or run (a few more if they are requested at the same instant)."""

MAX_PENDING_FOR_SWEEPS = 100
"""A sweep starts no job for a tenant that has this many under way: the rest is for jobs that people start."""

MAX_STORED = 10_000
"""The most jobs of one tenant, finished ones included: for a new one, the oldest finished one goes."""

MAX_CHUNK = 1_048_576
"""The most bytes of one chunk of input or output."""

MAX_ATTEMPTS = 8
"""How often one step is tried before its job fails."""

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0

Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]
"""The status of a job."""


@dataclass(frozen=True, slots=True)
class Job:
    """The current state of a job. `graph` is the name of its graph; the unit of `done` and `total` depends on its kind.

    `attempts`: how often the current step was begun; `error_code`: why it last failed; `lease`: the id of the current
    claim. `arguments`, `cursor` and `result` hold numbers, ids and options: never stored text.
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
    output_deleted: bool

    @property
    def is_finished(self) -> bool:
        """Whether the job has succeeded, failed or been cancelled."""
        return self.finished_at is not None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to create. If it is `unique` and an equal job is under way, that one is used instead.

    `cursor`: where its first step begins, if the call that starts it has done a part of the work.
    A job that `is_held` waits for its input. Since it has its own input, it equals no other job, unless
    `input_description` describes the input. Only a digest of that is stored, since it may hold text.
    """

    kind: str
    graph_id: UUID | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    total: int | None = None
    unique: bool = True
    is_held: bool = False
    input_description: bytes | None = None
    cursor: dict[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> bytes | None:
        """The same 32 bytes for equal jobs; None for a job that equals no other."""
        if not self.unique or (self.is_held and self.input_description is None):
            return None
        inputs = [] if self.input_description is None else [self.input_description]
        identity = (self.kind, self.graph_id, self.arguments, *inputs)
        return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).digest()


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of one step: the cursor from which the next step goes on, and the progress (`done` of `total`).

    The last step is `finished` and has the `result` of the job. A step that only reads its input up to the job's
    position returns the job's cursor and progress unchanged, and the turn goes on: a kind must make progress after a
    bounded number of such steps. `output`: chunks of 1 to MAX_CHUNK bytes to append to the job's output.
    """

    cursor: dict[str, Any]
    done: int
    total: int | None = None
    finished: bool = False
    result: dict[str, Any] | None = None
    output: tuple[bytes, ...] = ()


StepFunction = Callable[[Transaction, Job], Awaitable[StepResult]]
"""One kind of job: does the next step from the job's cursor, in a transaction that also stores the step's result.

A step is bounded (seconds, not minutes), makes no network call, and has no effect outside its transaction.
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
        """The bounds that the settings give."""
        return cls(
            timedelta(seconds=settings.job_lease_seconds),
            timedelta(days=settings.job_retention_days),
            settings.jobs_per_tenant,
            settings.job_storage_bytes,
        )


@dataclass(frozen=True, slots=True)
class JobStorage:
    """The bytes of input and output that a tenant's jobs keep, and that they may keep."""

    stored: int
    allowed: int


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs to list. None matches any value."""

    graph_id: UUID | None = None
    kind: str | None = None
    status: str | None = None


class StepRefused(InvalidInput):
    """Raised by a step that can never succeed. Its message is stored with the job, so it must hold no stored text."""


class LeaseLost(RecollectError):
    """Another worker has the job, so this step must not commit."""

    default_code = ErrorCode.BUSY


class StepPostponed(Exception):
    """A step cannot be done yet, for a known reason. The job is retried after `wait`; the attempt does not count.

    `counts`: it does, and the job fails after MAX_ATTEMPTS.
    """

    def __init__(self, reason: RecollectError, wait: timedelta, *, counts: bool = False) -> None:
        super().__init__(str(reason))
        self.reason, self.wait, self.counts = reason, wait, counts


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a step failed, without stored text, and whether a retry may help."""

    code: ErrorCode
    message: str
    is_retryable: bool


SERVER_ERROR_CODES = (ErrorCode.INTERNAL, ErrorCode.DATABASE_UNAVAILABLE, ErrorCode.BUSY)
"""Codes of failures that the tenant neither caused nor can fix; failures of embedders have an alert of their own."""


def failure_of(error: Exception) -> Failure:
    """The code and a sentence to store for an error, without stored text.

    An error that the job's own arguments cause fails the job at once. All others are retried, faults of ours included,
    since the step was rolled back.
    """
    match error:
        case StepRefused():
            return Failure(error.code, error.message, is_retryable=False)
        case QuotaExceeded():
            return Failure(error.code, error.message_without_usage, is_retryable=False)
        case RecollectError():
            is_retryable = error.kind in (ErrorKind.UNAVAILABLE, ErrorKind.INTERNAL)
            return Failure(error.code, _SENTENCES[error.kind], is_retryable)
        case TimeoutError():
            return Failure(ErrorCode.BUSY, _SENTENCES[Unavailable.kind], is_retryable=True)
    return Failure(ErrorCode.INTERNAL, _SENTENCES[ErrorKind.INTERNAL], is_retryable=True)


WORKER_LOST = Failure(
    ErrorCode.INTERNAL, "Every worker that tried the next step stopped in the middle of it.", is_retryable=False
)


def wait_before(attempt: int) -> timedelta:
    """How long to wait after this many failures in a row: doubled each time, half of it random.

    The random half keeps jobs that failed together from coming back together.
    """
    seconds = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (min(attempt, 30) - 1))
    return timedelta(seconds=seconds * random.uniform(0.5, 1))  # noqa: S311 - no secret


_SENTENCES = {
    ErrorKind.INVALID: "The input of the job was not accepted.",
    ErrorKind.RATE_LIMITED: "The job made too many requests.",
    ErrorKind.UNAUTHENTICATED: "The job lacks a right that it needs.",
    ErrorKind.FORBIDDEN: "The job lacks a right that it needs.",
    ErrorKind.NOT_FOUND: "Something that the job needs does not exist.",
    ErrorKind.METHOD_NOT_ALLOWED: "The job lacks a right that it needs.",
    ErrorKind.CONFLICT: "The current state of the graph does not allow the job.",
    ErrorKind.PRECONDITION_FAILED: "Something that the job was to change has changed meanwhile.",
    ErrorKind.PRECONDITION_REQUIRED: "The input of the job was not accepted.",
    ErrorKind.UNPROCESSABLE: "The input of the job was not accepted.",
    ErrorKind.TOO_LARGE: "The job would exceed a limit.",
    ErrorKind.UNAVAILABLE: "A service that the job needs was unavailable or busy.",
    ErrorKind.INTERNAL: "Something went wrong on our side.",
}
