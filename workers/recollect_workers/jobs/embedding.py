"""Give passages their vectors.

A batch is claimed in one transaction, embedded outside any, and stored in another, while the next batch is claimed and
embedded: PostgreSQL takes longer than a small embedder. A worker that dies in between leaves passages claimed until
their lease ends; then the next sweep takes them. The sweep also repeats commits that a dying PostgreSQL lost: commits
here do not wait for the disk, which calls need. Passages that the embedder refuses are set aside; an embedder that
fails for any text is not asked for a while.

A wake-up serves small recent writes, and the sweep everything, a turn for each tenant: a new memory does not wait for
an import, be it another tenant's or its own (docs/adr/0010-what-was-just-said-is-embedded-first.md).
"""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import structlog

from recollect.accounts.identity.model import worker_caller
from recollect.accounts.quotas import service as quotas
from recollect.accounts.usage import service as usage
from recollect.embedding import Embedder
from recollect.graph.passage_words import service as passage_words
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import ClaimedPassage, PendingPassage
from recollect.ids import time_of
from recollect.jobs.model import EMBED_PASSAGES
from recollect.postgres.sql import QueryPlan
from recollect.telemetry.metrics import record_embedded, record_refused
from recollect.telemetry.tracing import continued_span
from recollect_workers.bisect_failures import EmbedOutcome, embed_bisecting
from recollect_workers.context import WorkerContext
from recollect_workers.failure_logging import FailureLogger

MAX_COUNTED = 10
"""Graphs of a tenant whose terms are counted after one run, each in a transaction of its own."""

MAX_BATCHES = 8
SLICE_SECONDS = 3.0
"""Batches and seconds of one run. A tenant with more to embed waits for another turn, behind the other tenants."""

SHORT_BATCH = 64
"""Passages of a batch while other tenants call; the worker rests after it."""

log = structlog.get_logger(__name__)


async def woken(context: WorkerContext, tenant_id: UUID, carrier: Mapping[str, str]) -> None:
    """The job of a wake-up: embed small recent writes, in the trace of the request that caused it.

    A tenant has one run at a time, so that a busy tenant leaves room for others. A wake-up that comes during the run,
    or work that the run leaves, sends another wake-up, which waits behind those of other tenants. Other pending
    passages are left to the sweep, which is started.
    """
    if tenant_id in context.woken:
        context.woken[tenant_id] = True
        return
    context.woken[tenant_id] = False
    try:
        more = await _attempt_embedding(context, tenant_id, carrier, small_only=True)
        for graph_id in context.until_stopping(await _changed_or_left(context, tenant_id)):
            await _count_terms_of(context, tenant_id, graph_id)
    finally:
        again = context.woken.pop(tenant_id)
    if more or again:
        context.wakeups.notify(tenant_id, frozenset({EMBED_PASSAGES}))


async def sweep(context: WorkerContext) -> None:
    """Embed all pending passages, announced or not: a run for each tenant in turn, until none has more.

    Each round looks tenants up anew, since a round may be long. Raises Unavailable when the database is unreachable.
    """
    context.backoff.due.clear()
    while await _sweep_round(context):
        pass


async def _sweep_round(context: WorkerContext) -> bool:
    """A run for each tenant; whether any may have more. In random order: one tenant's failure may end it for all."""
    if context.waiting:
        return False
    tenants = await passages.tenants_with_pending(context.database)
    random.shuffle(tenants)
    return any([await _attempt_run(context, tenant_id) for tenant_id in context.until_stopping(tenants)])


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """Claimed passages, and the outcome of embedding those without a vector.

    `is_last`: when they were claimed, no others waited but those that other workers had locked or claimed.
    """

    embedder: Embedder
    claimed: Sequence[PendingPassage]
    outcome: EmbedOutcome
    is_last: bool = False

    @property
    def unembedded(self) -> list[PendingPassage]:
        """The claimed passages without a vector."""
        return _without_vector(self.claimed)

    @property
    def is_complete(self) -> bool:
        """Whether the embedder accepted all of them, so that none goes back into the queue."""
        return len(self.outcome.ids) == len(self.unembedded)


def _without_vector(claimed: Sequence[PendingPassage]) -> list[PendingPassage]:
    return [passage for passage in claimed if passage.text is not None]


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """The result of a batch: how many passages were settled, and how many of them got a vector."""

    settled: int
    embedded: int


async def embed_passages(
    context: WorkerContext, tenant_id: UUID, carrier: Mapping[str, str], *, small_only: bool = False
) -> bool:
    """Embed up to MAX_BATCHES batches of one tenant, for SLICE_SECONDS; whether there may be more.

    `small_only`: only small recent writes. Raises Unavailable when the database or the embedder is unreachable.
    """
    work = _EmbeddingSlice(context, tenant_id, small_only=small_only)
    with continued_span(EMBED_PASSAGES, carrier, system="arq") as span:
        span.set_attribute("recollect.tenant.id", str(tenant_id))
        try:
            return await work.run()
        finally:
            if work.settled:
                context.links_due.set()
            span.set_attribute("recollect.passages", work.embedded)
            if work.embedded:
                log.info("passages embedded", tenant=str(tenant_id), passages=work.embedded)


class _EmbeddingSlice:
    """One tenant's turn: each batch is stored while the next is embedded.

    `settled`: how many passages were settled; `embedded`: how many of them got a vector.
    """

    def __init__(self, context: WorkerContext, tenant_id: UUID, *, small_only: bool = False) -> None:
        self.settled = self.embedded = 0
        self._context, self._tenant_id, self._small_only = context, tenant_id, small_only
        self._storing: asyncio.Task[None] | None = None

    async def run(self) -> bool:
        """Run the turn; whether there may be more. It ends after a pending store, even with an error."""
        deadline = time.monotonic() + SLICE_SECONDS
        try:
            for _ in range(MAX_BATCHES):
                if self._context.stopping.is_set() or not await self._paced_batch():
                    return False
                if time.monotonic() >= deadline:
                    break
            return True
        finally:
            await self._wait_until_stored()

    async def _paced_batch(self) -> bool:
        """Do a batch; a short one, with a rest after it, while others call. Small recent writes never rest."""
        if self._small_only or not await self._context.is_slow(self._tenant_id):
            return await self._do_batch()
        await self._wait_until_stored()
        async with self._context.part(self._tenant_id):
            more = await self._do_batch(most=SHORT_BATCH)
            await self._wait_until_stored()
        return more

    async def _do_batch(self, *, most: int | None = None) -> bool:
        """Embed a batch and begin to store it; whether there may be more, known without another claim."""
        is_storing = self._storing is not None
        batch = await self._embed_next(most)
        await self._wait_until_stored()
        if batch is None and is_storing:
            # Storing locks neighbours of the stored passages, and a claim skips locked rows.
            batch = await self._embed_next(most)
        if batch is None:
            return False
        self._storing = asyncio.create_task(self._store(batch))
        if not batch.is_complete:  # Passages that it returns to the queue may be claimed at once.
            await self._wait_until_stored()
            return True
        return is_storing or not batch.is_last

    async def _embed_next(self, most: int | None) -> EmbeddingBatch | None:
        return await _embed_next(self._context, self._tenant_id, small_only=self._small_only, most=most)

    async def _store(self, batch: EmbeddingBatch) -> None:
        """Store a batch. Raises EmbeddingFailed where the embedder went away, after its vectors were stored."""
        stored = await _store(self._context, self._tenant_id, batch)
        self.settled += stored.settled
        self.embedded += stored.embedded
        if batch.unembedded:
            _adjust_backoff(self._context, self._tenant_id, batch)

    async def _wait_until_stored(self) -> None:
        if self._storing is not None:
            storing, self._storing = self._storing, None
            await storing


async def _embed_next(
    context: WorkerContext, tenant_id: UUID, *, small_only: bool = False, most: int | None = None
) -> EmbeddingBatch | None:
    """Claim a batch and embed it; None where nothing waits, or only for an embedder whose backoff is running."""
    for embedder in context.embedders:
        if context.backoff_of(embedder).waiting:
            continue
        if claimed := await _claim(context, tenant_id, embedder, small_only=small_only, most=most):
            seconds = context.settings.embedding_lease_seconds / 2
            outcome = await embed_bisecting(embedder, _without_vector(claimed), seconds=seconds)
            is_last = len(claimed) < claimed[0].max_per_graph and embedder is context.embedders[-1]
            return EmbeddingBatch(embedder, claimed, outcome, is_last)
    return None


async def _claim(
    context: WorkerContext, tenant_id: UUID, embedder: Embedder, *, small_only: bool, most: int | None
) -> list[ClaimedPassage]:
    settings = context.settings
    limit = context.backoff_of(embedder).batch(
        tenant_id, min(settings.embedding_batch, most or settings.embedding_batch)
    )
    async with context.database.transaction(worker_caller(tenant_id), durable=False, plan=QueryPlan.ONCE) as tx:
        remaining = await quotas.embeddings_left(tx, datetime.now(UTC))
        if remaining == 0:
            return []  # They wait for the next day: a sweep after midnight finds them.
        return await passages.claim_pending(
            tx,
            model=embedder.model,
            limit=limit if remaining is None else min(limit, remaining),
            lease_seconds=settings.embedding_lease_seconds,
            previous=_previous_model(context),
            small_only=small_only,
        )


def _previous_model(context: WorkerContext) -> str | None:
    return None if context.previous is None else context.previous.model


async def _store(context: WorkerContext, tenant_id: UUID, batch: EmbeddingBatch) -> StoredBatch:
    caller, model, claimed, now = worker_caller(tenant_id), batch.embedder.model, batch.claimed, datetime.now(UTC)
    async with context.database.transaction(caller, durable=False, plan=QueryPlan.ONCE) as tx:
        # Another worker may have used up the day's quota since: passages beyond it go back into the queue.
        outcome = batch.outcome.first(await quotas.take_embeddings(tx, now, len(batch.outcome.ids)))
        deleted = await passages.lock_claimed_graphs(tx, claimed, model=model, previous=_previous_model(context))
        failed = [failed for failed in outcome.failed if failed.id not in deleted]
        refused = await passages.record_failures(tx, failed, claimed)
        done = {*outcome.ids, *refused}
        settled = [p for p in claimed if (p.text is None or p.id in done) and p.id not in deleted]
        embedded = await passages.settle(
            tx, settled, model=model, ids=outcome.ids, vectors=outcome.vectors, evidence=outcome.evidence
        )
        tried = {*done, *(passage.id for passage in failed)}
        released = [p for p in claimed if p.id in deleted or (p.text is not None and p.id not in tried)]
        await passages.release_claimed_passages(tx, released)
        if embedded:
            await usage.count_embedded(tx, embedded, now)
    record_embedded(embedded, [(now - time_of(passage)).total_seconds() for passage in outcome.ids if embedded])
    if refused:
        record_refused(len(refused))
        log.warning("passages rejected by the embedder", tenant=str(tenant_id), passages=len(refused))
    return StoredBatch(len(settled), embedded)


def _adjust_backoff(context: WorkerContext, tenant_id: UUID, batch: EmbeddingBatch) -> None:
    """Adjust the backoff and the batch size to a batch's outcome. Raises the failure that aborted the batch, if any."""
    backoff, outcome = context.backoff_of(batch.embedder), batch.outcome
    if outcome.aborted_by is not None:
        seconds = backoff.note_failure(outcome.aborted_by)
        log.info("embedding paused", seconds=round(seconds, 1))
        raise outcome.aborted_by
    backoff.note_success()
    if outcome.smallest_failed_group is None:
        backoff.grow(tenant_id, context.settings.embedding_batch)
    else:
        backoff.shrink(tenant_id, outcome.smallest_failed_group)


async def count_terms(context: WorkerContext, tenant_id: UUID) -> None:
    """Count the terms of the tenant's graphs that have changed much. Never raises, so that other tenants go on."""
    changed = list[UUID]()
    with FailureLogger("terms not counted", tenant_id):
        async with context.database.transaction(worker_caller(tenant_id), read_only=True) as tx:
            changed = await passage_words.graphs_to_count(tx, limit=MAX_COUNTED)
    for graph_id in context.until_stopping(changed):
        async with context.part(tenant_id):
            await _count_terms_of(context, tenant_id, graph_id)


async def _count_terms_of(context: WorkerContext, tenant_id: UUID, graph_id: UUID) -> None:
    with FailureLogger("terms not counted", tenant_id, graph=str(graph_id)):
        async with context.database.transaction(worker_caller(tenant_id), durable=False) as tx:
            await passage_words.recount_terms(tx, graph_id)


async def _changed_or_left(context: WorkerContext, tenant_id: UUID) -> list[UUID]:
    """After a wake-up: the graphs whose terms have to be counted anew.

    Empty where passages still wait, and an embedder may be asked: then the sweep is started, which counts them, too.
    """
    with FailureLogger("sweep not started", tenant_id):  # A regular sweep comes later in any case.
        async with context.database.transaction(worker_caller(tenant_id), read_only=True) as tx:
            if not context.waiting and await passages.any_pending(tx):
                context.backoff.due.set()
                return []
            return await passage_words.graphs_to_count(tx, limit=MAX_COUNTED)
    return []


async def _attempt_run(context: WorkerContext, tenant_id: UUID) -> bool:
    """Embed a tenant's passages, then count the terms of changed graphs; whether there may be more to embed."""
    more = await _attempt_embedding(context, tenant_id, {})
    await count_terms(context, tenant_id)
    return more


async def _attempt_embedding(
    context: WorkerContext, tenant_id: UUID, carrier: Mapping[str, str], *, small_only: bool = False
) -> bool:
    """Embed a tenant's passages; whether there may be more."""
    if context.waiting:
        return False  # The sweep comes when the wait is over.
    with FailureLogger("embedding failed", tenant_id):  # They come back when their lease ends.
        return await embed_passages(context, tenant_id, carrier, small_only=small_only)
    return False
