"""Following a job from a command: its progress, its end, and what to do where it fails."""

import sys
import time
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import msgspec

from recollect.errors import ErrorCode, InvalidInput, RecollectError, Unavailable
from recollect_cli.gateway import ATTEMPT_SECONDS, Gateway
from recollect_cli.progress import EVERY_ITEMS, Meter, metered

JSON = "application/json"

FIRST_POLL_SECONDS = 0.05
POLL_SECONDS = 0.5
"""The pause between two polls of a job: short at first, since a small job is done at once, then doubled each time up to
this."""

PROGRESS_LINES = 20
"""Lines of progress that a wait prints where there is no terminal, at most, unless the caller says otherwise."""

WORKER_SECONDS = 5.0
"""After so long, a job that no worker has begun is shown as waiting for one."""

_ADVICE: dict[str, str] = {
    ErrorCode.JOB_STORAGE_FULL: "The storage of the tenant's jobs is full: wait until older jobs are deleted",
    **dict.fromkeys(
        (ErrorCode.INTERNAL, ErrorCode.BUSY, ErrorCode.DATABASE_UNAVAILABLE, ErrorCode.EMBEDDER_UNAVAILABLE),
        "Run the command again",
    ),
}
"""What to do, by error code, where the message of a failed job does not say it."""


class JobFailure(msgspec.Struct, frozen=True):
    """Why a job failed, or must repeat its step."""

    code: str
    message: str


class JobView(msgspec.Struct, frozen=True):
    """The fields of a job that commands show."""

    id: UUID
    kind: str
    graph: str | None
    status: str
    done: int
    total: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    output_bytes: int
    result: dict[str, msgspec.Raw] | None
    error: JobFailure | None
    cancel_requested: bool = False

    @property
    def is_ending(self) -> bool:
        """Whether it was cancelled and its current step has not ended yet."""
        return self.cancel_requested and self.finished_at is None


@dataclass(frozen=True, slots=True)
class Work:
    """The words for a job's work: "import", "importing", and (`kept`) what stays where it is cut short.

    `mend`: what stays, and what to do, where its file cannot be accepted as it is.
    """

    name: str
    doing: str
    kept: str = ""
    mend: str = ""


def get_job(gateway: Gateway, job_id: UUID) -> bytes:
    """The job, as JSON."""
    return gateway.send("GET", f"/jobs/{job_id}")


def cancel_job(gateway: Gateway, job_id: UUID) -> bytes:
    """Cancel the job; returns it as JSON."""
    return gateway.post(f"/jobs/{job_id}/cancel", b"", media_type=JSON)


def follow(gateway: Gateway, job_id: UUID, work: Work) -> JobView:
    """Wait for a job and return it once it has succeeded. Ctrl-C cancels the job and says so.

    Raises InvalidInput where it failed or was cancelled, RecollectError where it cannot be followed to its end.
    """
    try:
        job = wait_for_job(gateway, job_id, doing=work.doing, item="items", every=EVERY_ITEMS)
    except RecollectError as error:
        raise RecollectError(
            f"{_sentence(error)} This command no longer follows the {work.name}. Follow it with `recollect jobs show "
            f"{job_id} --wait`, or cancel it with `recollect jobs cancel {job_id}`"
        ) from error
    except KeyboardInterrupt:
        print(f"Stopped. {_cancel(gateway, job_id, work)}", file=sys.stderr)
        raise
    if job.status != "succeeded":
        raise InvalidInput(_failure_message(job, work))
    return job


def wait_for_job(gateway: Gateway, job_id: UUID, *, doing: str | None = None, item: str, every: int | None) -> JobView:
    """Wait for a job's end and return the job; until then, a meter shows its progress, or what it waits for.

    Where there is no terminal, progress is printed after every `every` items; None: after each twentieth of the total.
    Raises the gateway's refusals, and Unavailable where it stays unreachable for longer than a restart takes.
    """
    job, began_at, pause = _view(gateway, job_id), time.monotonic(), FIRST_POLL_SECONDS
    seen_at = began_at
    with metered(doing or job.kind, job.total, item=item, every=every or _twentieth(job)) as meter:
        while job.finished_at is None:
            meter.advance(job.done, job.done, job.total)
            time.sleep(pause)
            pause = min(2 * pause, POLL_SECONDS)
            try:
                job, seen_at = _view(gateway, job_id), time.monotonic()
                _show_wait(meter, job, seen_at - began_at)
            except Unavailable:
                if time.monotonic() - seen_at > ATTEMPT_SECONDS:
                    raise
                meter.wait_for("the gateway")
        meter.advance(job.done, job.done, job.total)
    return job


def _view(gateway: Gateway, job_id: UUID) -> JobView:
    return msgspec.json.decode(get_job(gateway, job_id), type=JobView)


def _twentieth(job: JobView) -> int:
    return max((job.total or 0) // PROGRESS_LINES, 1)


def _show_wait(meter: Meter, job: JobView, seconds: float) -> None:
    is_idle = job.started_at is None and job.finished_at is None
    meter.wait_for("a worker" if is_idle and seconds > WORKER_SECONDS else None)


def _cancel(gateway: Gateway, job_id: UUID, work: Work) -> str:
    """Cancel the job; returns the sentence that says so, or why the job goes on."""
    try:
        job = msgspec.json.decode(cancel_job(gateway, job_id), type=JobView)
    except RecollectError as error:
        return f"The {work.name} continues. {_sentence(error)} Cancel it with `recollect jobs cancel {job_id}`"
    if job.status in ("succeeded", "failed"):
        return f"The {work.name} had already ended: `recollect jobs show {job_id}` shows its result"
    return f"The {work.name} is cancelled{f'. {work.kept}' if work.kept else ''}"


def _failure_message(job: JobView, work: Work) -> str:
    """Why a job did not succeed, and what to do."""
    if job.error is None:
        return f"The {work.name} was {job.status} by somebody else. {work.kept or 'Run the command again'}"
    remains = work.mend if work.mend and job.error.code == ErrorCode.INVALID_INPUT else work.kept
    return _joined(f"The {work.name} failed: {job.error.message}", _ADVICE.get(job.error.code), remains)


def _joined(*sentences: str | None) -> str:
    """The sentences without the empty ones, with a full stop between any two."""
    present = [sentence for sentence in sentences if sentence]
    return " ".join([*(f"{sentence.rstrip('.')}." for sentence in present[:-1]), present[-1]])


def _sentence(error: RecollectError) -> str:
    return f"{str(error).rstrip('.')}."
