"""Give a graph vectors of another model, while the old ones serve; then switch over, and drop the old ones on request.

Three phases, each page by page: `embed` stores the new vectors next to the old, `switch` makes searches use them,
`drop` deletes the others. Existing vectors are not computed again: to go back, run the same job with the previous
model.
"""

from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from uuid import UUID

from recollect.accounts.quotas import service as quotas
from recollect.accounts.quotas.model import until_tomorrow
from recollect.accounts.usage import service as usage
from recollect.caller import Caller
from recollect.embedding import Embedder, EmbeddingFailed
from recollect.errors import QuotaExceeded
from recollect.graph.passages import reembedding
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import PendingPassage
from recollect.jobs.model import Job, StepFunction, StepPostponed, StepRefused, StepResult
from recollect.postgres.transactions import Transaction
from recollect.telemetry.metrics import record_embedded
from recollect_workers.bisect_failures import EmbedOutcome, embed_bisecting
from recollect_workers.context import WorkerContext

_DAY_USED_UP = QuotaExceeded("The plan allows no more passages to be embedded today (UTC).", "", "It goes on tomorrow.")
_CHECK_AGAIN = timedelta(hours=1)
"""The time after which a larger plan is noticed."""

SWITCHED_AT_ONCE = 500
DROPPED_AT_ONCE = 5_000


async def prepare(context: WorkerContext, caller: Caller, job: Job) -> StepFunction:
    """The next step; in the first phase, with the vectors that it will store.

    Raises StepRefused for a model that the worker does not have, EmbeddingFailed where the embedder is unreachable, and
    StepPostponed while the worker waits for it, or until the tenant may embed more.
    """
    if job.graph_id is None:
        raise StepRefused("This job has no graph: one graph is reembedded at a time.")
    embedder = _embedder(context, job.cursor.get("model") or job.arguments.get("model"))
    phase = job.cursor.get("phase", "embed")
    if phase != "embed":
        return partial(switch if phase == "switch" else drop, graph_id=job.graph_id, model=embedder.model)
    backoff = context.backoff_of(embedder)
    if backoff.waiting:
        raise StepPostponed(
            EmbeddingFailed("failed, and is left alone for a while"), timedelta(seconds=backoff.seconds)
        )
    limit = context.settings.embedding_batch
    async with context.database.transaction(caller, read_only=True) as tx:
        remaining = await quotas.embeddings_left(tx, datetime.now(UTC))
        if remaining == 0:
            raise _postponed_to_tomorrow()
        limit = limit if remaining is None else min(limit, remaining)
        page, more = await reembedding.list_without_vectors(
            tx, job.graph_id, model=embedder.model, after=_after(job), limit=limit
        )
    unembedded = [passage for passage in page if passage.text is not None]
    outcome = await embed_bisecting(embedder, unembedded, seconds=context.settings.job_lease_seconds / 3)
    tried = {*outcome.ids, *(failed.id for failed in outcome.failed)}
    if outcome.aborted_by is not None:
        backoff.note_failure(outcome.aborted_by)
    elif unembedded:
        backoff.note_success()
    if unembedded and not tried:
        raise outcome.aborted_by or EmbeddingFailed("took too long")
    done = list(takewhile(lambda passage: passage.text is None or passage.id in tried, page))
    is_last = not more and len(done) == len(page)
    return partial(
        store_vectors, graph_id=job.graph_id, model=embedder.model, page=done, outcome=outcome, is_last=is_last
    )


async def store_vectors(
    tx: Transaction,
    job: Job,
    *,
    graph_id: UUID,
    model: str,
    page: list[PendingPassage],
    outcome: EmbedOutcome,
    is_last: bool,
) -> StepResult:
    """Store the vectors of the passages of a page that had none.

    Texts that the embedder refuses are left to the queue, which sets them aside.

    After the last page the model serves the graph: everything that is written from then on is embedded by it.
    """
    cursor, now = dict(job.cursor), datetime.now(UTC)
    if await quotas.take_embeddings(tx, now, len(outcome.ids)) < len(outcome.ids):
        raise StepPostponed(_DAY_USED_UP, timedelta())  # Other embeddings used the quota since: retry with fewer.
    if "passages" not in cursor:
        cursor |= {
            "model": model,
            "passages": await reembedding.begin_model_change(tx, graph_id, model=model),
            "embedded": 0,
        }
        await passages.retry_refused(tx, graph_id)
    embedded = await reembedding.store_vectors(
        tx, graph_id, model=model, ids=outcome.ids, vectors=outcome.vectors, evidence=outcome.evidence
    )
    if embedded:
        await usage.count_embedded(tx, embedded, now)
        record_embedded(embedded)  # Before the commit: the metric also counts a step that is rolled back.
    cursor["embedded"] += embedded
    done = job.done + len(page)
    if not is_last:
        return StepResult(cursor | {"after": str(page[-1].id)}, done, max(done, 2 * cursor["passages"]))
    await reembedding.set_serving_model(tx, graph_id, model=model)
    cursor.pop("after", None)
    return StepResult(cursor | {"phase": "switch"}, done, max(done, done + cursor["passages"]))


async def switch(tx: Transaction, job: Job, *, graph_id: UUID, model: str) -> StepResult:
    """Switch the next page to its new vectors."""
    page = await reembedding.switch_page(tx, graph_id, model=model, after=_after(job), limit=SWITCHED_AT_ONCE)
    done = job.done + len(page)
    total = max(done, job.total or 0)
    if len(page) == SWITCHED_AT_ONCE:
        return StepResult(job.cursor | {"after": str(page[-1])}, done, total)
    # Neighbours of a page are switched with it, and do not appear in later pages.
    if job.arguments.get("drop_old"):
        return StepResult({**job.cursor, "phase": "drop"}, total, total)
    return StepResult(job.cursor, total, total, finished=True, result=_result(job, model))


async def drop(tx: Transaction, job: Job, *, graph_id: UUID, model: str) -> StepResult:
    """Delete a page of the other models' vectors."""
    dropped = await reembedding.drop_vectors_of_other_models(tx, graph_id, model=model, limit=DROPPED_AT_ONCE)
    done = job.done + dropped
    finished = dropped < DROPPED_AT_ONCE
    return StepResult(job.cursor, done, done if finished else None, finished, _result(job, model) if finished else None)


def _postponed_to_tomorrow() -> StepPostponed:
    return StepPostponed(_DAY_USED_UP, min(until_tomorrow(datetime.now(UTC)), _CHECK_AGAIN))


def _result(job: Job, model: str) -> dict[str, object]:
    return {"model": model, "passages": job.cursor["passages"], "embedded": job.cursor["embedded"]}


def _after(job: Job) -> UUID | None:
    return UUID(job.cursor["after"]) if "after" in job.cursor else None


def _embedder(context: WorkerContext, model: str | None) -> Embedder:
    for embedder in context.embedders:
        if model in (None, embedder.model):
            return embedder
    raise StepRefused("The worker has no embedder of that model: see RECOLLECT_EMBEDDER, RECOLLECT_PREVIOUS_EMBEDDER.")
