"""Have a language model distil facts from a conversation, page by page, and then remove what a former job had found.

A step reads a page of turns in one transaction, asks the model in none, counts the request in a second and writes the
facts in a third. The model's answer is data: facts are read from it, and nothing else becomes of it. A model that
answers something else is asked about fewer turns the next time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from recollect.accounts.identity.model import worker_caller
from recollect.accounts.quotas.model import until_tomorrow
from recollect.accounts.usage import service as usage
from recollect.caller import Caller
from recollect.distilling.language_models import service as language_models
from recollect.distilling.language_models.model import ChosenModel
from recollect.distilling.threads import service as threads
from recollect.distilling.threads.model import (
    INSTRUCTIONS,
    MAX_ANSWER_TOKENS,
    MAX_THREAD_TURNS,
    MAX_TURNS,
    SCHEMA,
    FoundFact,
    TurnBatch,
    data_of,
    read_facts,
)
from recollect.errors import ErrorCode, Unavailable
from recollect.ids import time_of
from recollect.jobs.kinds import DISTIL_THREAD
from recollect.jobs.model import Job, StepFunction, StepPostponed, StepRefused, StepResult
from recollect.outbound.chat_completions import (
    Cause,
    ChatPrompt,
    Completion,
    ModelFailed,
    Send,
    complete,
    guarded_sender,
    send_directly,
)
from recollect.postgres.transactions import Transaction
from recollect_workers.context import WorkerContext

OWN_MODEL = f"{DISTIL_THREAD}_own"
"""The name under which requests to models of tenants are counted; those to the operator's have the name of the job."""

MAX_WRONG_ANSWERS = 4
"""How often a model may give an unusable answer to one page, each time about fewer turns, before the job fails."""

LONGEST_RETRY_AFTER = timedelta(minutes=10)
LOOK_AGAIN = timedelta(hours=1)
"""The longest waits: when a model says when to ask again, and when the requests of the day are used up."""

BUSY_SECONDS = 2.0
"""How long a job waits while the worker distils as much as it may at once."""

_BUSY = Unavailable("The worker distils other conversations now.", code=ErrorCode.BUSY)
_TALKING = Unavailable("The conversation goes on: it is distilled once it was quiet for a while.", code=ErrorCode.BUSY)
_USED_UP = Unavailable("The requests to the language model of this day (UTC) are used up.", code=ErrorCode.BUSY)


class Distillery:
    """Does the steps. At most half of a worker's jobs wait for models at once, so that others get their turns."""

    def __init__(self, max_jobs: int) -> None:
        self._free = max(max_jobs // 2, 1)

    async def prepare(self, context: WorkerContext, caller: Caller, job: Job) -> StepFunction:
        """The next step, with the facts that it will write.

        Raises StepRefused where there is no model or it refuses to work, ModelFailed where it is unreachable or gave no
        usable answer, and StepPostponed while it, the worker or the conversation is busy.
        """
        if job.graph_id is None:
            raise StepRefused("This job has no graph: a conversation is in one graph.")
        if job.cursor.get("phase") == "replace":
            return replace_former
        async with context.database.transaction(caller, read_only=True) as tx:
            page = await threads.read_page(tx, job, limit=_limit(job))
            _require_quiet(job, page)
            chosen = await _choose(tx, context, job)
        if not page.turns:
            return partial(end, counts=_counts(job))
        with self._permit():
            completion = await _ask(context, caller, job, page, chosen)
        facts, refused = await _read(context, caller, job, page, chosen, completion)
        return partial(write, page=page, facts=facts, refused=refused, completion=completion, chosen=chosen)

    @contextmanager
    def _permit(self) -> Iterator[None]:
        if self._free == 0:
            raise StepPostponed(_BUSY, timedelta(seconds=BUSY_SECONDS))
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1


async def write(
    tx: Transaction,
    job: Job,
    *,
    page: TurnBatch,
    facts: list[FoundFact],
    refused: int,
    completion: Completion,
    chosen: ChosenModel,
) -> StepResult:
    """Write the facts of a page. Done counts the turns that were read."""
    written = await threads.write_facts(tx, job, page, facts, chosen.model.name)
    if written is None:
        return StepResult(job.cursor, job.done, job.total)
    counts = _counts(job)
    for name, count in (
        ("turns", len(page.turns)),
        ("facts", written.new),
        ("known", written.known),
        ("refused", refused),
        ("requests", completion.requests),
        ("tokens", completion.tokens),
    ):
        counts[name] += count
    after = {
        "after": str(page.turns[-1].id),
        "form": completion.form,
        "model": chosen.model.name,
        "limit": _limit(job),
    }
    cursor = {**{key: value for key, value in job.cursor.items() if key != "quiet"}, **after, **counts}
    done = counts["turns"]
    if written.more and done < MAX_THREAD_TURNS:
        return StepResult(cursor, done, max(page.total, done + 1))
    return await end(tx, replace(job, cursor=cursor), counts=counts | {"left": int(written.more)})


async def end(tx: Transaction, job: Job, *, counts: dict[str, int]) -> StepResult:
    """End a job, after what former jobs found was removed, if all turns were read anew."""
    done = counts["turns"]
    if job.cursor.get("only_new") or counts["left"]:
        return StepResult(job.cursor, done, done, finished=True, result=_result(job, counts, removed=0))
    return StepResult({**job.cursor, **counts, "phase": "replace"}, done, done)


async def replace_former(tx: Transaction, job: Job) -> StepResult:
    """Remove a page of the facts that former jobs found and this one did not."""
    removed, more = await threads.replace_former(tx, job)
    removed += job.cursor.get("removed", 0)
    if more:
        return StepResult({**job.cursor, "removed": removed}, job.done, job.total)
    result = _result(job, _counts(job), removed=removed)
    return StepResult(job.cursor, job.done, job.total, finished=True, result=result)


async def _choose(tx: Transaction, context: WorkerContext, job: Job) -> ChosenModel:
    try:
        chosen = await language_models.choose_model(tx, context.settings)
    except ValueError:
        raise StepRefused(
            "The key of the language model cannot be decrypted with RECOLLECT_KEY_SECRET. Set the model again.",
            code=ErrorCode.MODEL_REFUSED,
        ) from None
    if chosen is None:
        raise StepRefused("There is no language model any more.", code=ErrorCode.DISTILLING_OFF)
    now = datetime.now(UTC)
    if not chosen.is_own and (
        await usage.calls_today(tx, DISTIL_THREAD, now) >= context.settings.distil_requests_per_day
    ):
        raise StepPostponed(_USED_UP, min(until_tomorrow(now), LOOK_AGAIN))
    return chosen


async def _ask(context: WorkerContext, caller: Caller, job: Job, page: TurnBatch, chosen: ChosenModel) -> Completion:
    """The model's answer. Raises StepRefused, StepPostponed or ModelFailed where it gives none."""
    question = ChatPrompt(INSTRUCTIONS, data_of(page), "facts", SCHEMA, MAX_ANSWER_TOKENS)
    settings = context.settings
    seconds = min(settings.distil_timeout_seconds, settings.job_lease_seconds * 0.75)
    send: Send
    if not chosen.is_own:
        send = send_directly
    elif context.outbound is not None:
        send = guarded_sender(context.outbound, caller.tenant_id)
    else:
        raise StepPostponed(_BUSY, timedelta(seconds=BUSY_SECONDS))  # A worker without network.
    form = job.cursor.get("form", 0)
    try:
        return await complete(send, chosen.model, question, seconds=seconds, form=form)
    except ModelFailed as failed:
        await _count(context, caller, chosen, failed.requests, errors=failed.requests)
        raise _consequence(job, failed) from None


async def _read(
    context: WorkerContext, caller: Caller, job: Job, page: TurnBatch, chosen: ChosenModel, completion: Completion
) -> tuple[list[FoundFact], int]:
    try:
        found = read_facts(completion.text, page)
    except ModelFailed as failed:
        await _count(context, caller, chosen, completion.requests, errors=1)
        raise _consequence(job, failed) from None
    await _count(context, caller, chosen, completion.requests)
    return found


async def _count(
    context: WorkerContext, caller: Caller, chosen: ChosenModel, requests: int, *, errors: int = 0
) -> None:
    """Count requests, whatever becomes of the step: they were sent, and cost something."""
    name = OWN_MODEL if chosen.is_own else DISTIL_THREAD
    async with context.database.transaction(worker_caller(caller.tenant_id)) as tx:
        await usage.count_work(tx, name, datetime.now(UTC), calls=requests, errors=errors)


def _consequence(job: Job, failed: ModelFailed) -> Exception:
    """The error of a step whose model gave no usable answer."""
    if failed.cause is Cause.REFUSED:
        return StepRefused(f"{failed.message} Check its address, its name and its key.", code=ErrorCode.MODEL_REFUSED)
    if failed.cause in (Cause.ANSWER, Cause.REQUEST) and job.attempts >= MAX_WRONG_ANSWERS:
        return StepRefused(failed.message, code=ErrorCode.MODEL_REFUSED)
    if failed.retry_after:
        wait = min(timedelta(seconds=failed.retry_after), LONGEST_RETRY_AFTER)
        return StepPostponed(failed, wait, counts=True)
    return failed


def _require_quiet(job: Job, page: TurnBatch) -> None:
    """Raise StepPostponed while a conversation goes on, unless there is enough for a whole request."""
    if "quiet" not in job.cursor or page.more or not page.turns:
        return
    quiet = datetime.now(UTC) - time_of(page.turns[-1].id)
    wait = timedelta(seconds=job.cursor["quiet"]) - quiet
    if wait > timedelta(0):
        raise StepPostponed(_TALKING, wait)


def _limit(job: Job) -> int:
    """The turns of the next request: as many as went well before, and fewer after each unusable answer."""
    limit: int = job.cursor.get("limit", MAX_TURNS)
    is_smaller = job.error_code == ErrorCode.MODEL_ANSWER_UNUSABLE
    return max(limit >> 2 * (job.attempts - 1), 1) if is_smaller else limit


_COUNTED = ("turns", "facts", "known", "refused", "requests", "tokens", "left")


def _counts(job: Job) -> dict[str, int]:
    return {name: job.cursor.get(name, 0) for name in _COUNTED}


def _result(job: Job, counts: dict[str, int], *, removed: int) -> dict[str, object]:
    return {**counts, "left": bool(counts["left"]), "removed": removed, "model": job.cursor.get("model")}
