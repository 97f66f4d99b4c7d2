"""Give passages their vectors.

A batch is claimed in one transaction, embedded outside any, and stored in another, while the next one is claimed and
embedded: PostgreSQL takes longer than a small embedder. A worker that dies in between leaves passages claimed until
their lease ends; then the next sweep takes them up. It does so, too, where PostgreSQL died and forgot: no commit here
waits for the disk, for which calls wait. Passages that the embedder takes from nobody are set aside; one that fails
whatever it is given is left alone for a while.

A wake-up serves what few have just written, and the sweep everything, a turn for each tenant: what is told now waits
for no import, be it another tenant's or its own (docs/adr/0010-what-was-just-said-is-embedded-first.md).
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
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import ClaimedPassage, PendingPassage
from recollect.ids import time_of
from recollect.jobs.model import EMBED_PASSAGES
from recollect.platform.embedding import Embedder
from recollect.platform.metrics import record_embedded, record_refused
from recollect.platform.telemetry import continued_span
from recollect_workers.attempts import Attempt
from recollect_workers.bisect_failures import EmbedOutcome, embed_bisecting
from recollect_workers.context import WorkerContext

MAX_COUNTED = 10
"""Graphs of a tenant whose words are counted after one run, each in a transaction of its own."""

MAX_BATCHES = 8
TURN_SECONDS = 3.0
"""Batches and seconds of one run. A tenant with more to embed waits for another turn, behind the other tenants."""

SHORT_BATCH = 64
"""Passages of a batch beside other tenants' calls, after which the worker rests."""

log = structlog.get_logger(__name__)


async def woken(context: WorkerContext, tenant_id: UUID, carrier: Mapping[str, str]) -> None:
    """The job of a wake-up: a run through what few have just written, in the trace of the request that caused it.

    One at a time for each tenant, so that a busy one leaves room for others: a wake-up that comes meanwhile, like a run
    that leaves something, brings another one, behind the others'. What else waits is left to the sweep, which is told.
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
    """Embed whatever waits, announced or not: a run for each tenant in turn, until none has more.

    Who waits is asked anew each round, for a round may be long. Raises Unavailable when the database is away.
    """
    context.backoff.due.clear()
    while await _sweep_round(context):
        pass


async def _sweep_round(context: WorkerContext) -> bool:
    """A run for each tenant; whether any may have more. In no fixed order: one's failure may end it for all."""
    if context.waiting:
        return False
    waiting = await passages.tenants_with_pending(context.database)
    random.shuffle(waiting)
    return any([await _attempt_run(context, tenant_id) for tenant_id in context.until_stopping(waiting)])


@dataclass(frozen=True, slots=True)
class EmbeddingBatch:
    """Claimed passages, and what the embedder made of those that lacked a vector.

    `is_last`: nothing else waited as they were claimed, but what others had locked or claimed.
    """

    embedder: Embedder
    claimed: Sequence[PendingPassage]
    outcome: EmbedOutcome
    is_last: bool = False

    @property
    def bare(self) -> list[PendingPassage]:
        """Those that lacked a vector."""
        return [passage for passage in self.claimed if passage.text is not None]

    @property
    def whole(self) -> bool:
        """Whether the embedder took all of it, so that none goes back into the queue."""
        return len(self.outcome.ids) == len(self.bare)


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """What came of a batch: how many passages were settled, and how many of them got a vector."""

    settled: int
    embedded: int


async def embed_passages(
    context: WorkerContext, tenant_id: UUID, carrier: Mapping[str, str], *, small_only: bool = False
) -> bool:
    """Embed up to MAX_BATCHES batches of one tenant, for TURN_SECONDS; whether there may be more.

    `small_only`: of what few have written. Raises Unavailable when the database or the embedder is away.
    """
    run = _EmbeddingTurn(context, tenant_id, small_only=small_only)
    with continued_span(EMBED_PASSAGES, carrier, system="arq") as span:
        span.set_attribute("recollect.tenant.id", str(tenant_id))
        try:
            return await run.go()
        finally:
            if run.settled:
                context.links_due.set()
            span.set_attribute("recollect.passages", run.embedded)
            if run.embedded:
                log.info("passages embedded", tenant=str(tenant_id), passages=run.embedded)


class _EmbeddingTurn:
    """One tenant's turn: each batch is stored while the next is embedded.

    `settled`: passages that were, `embedded`: those of them that got a vector.
    """

    def __init__(self, context: WorkerContext, tenant_id: UUID, *, small_only: bool = False) -> None:
        self.settled = self.embedded = 0
        self._context, self._tenant_id, self._small_only = context, tenant_id, small_only
        self._storing: asyncio.Task[None] | None = None

    async def go(self) -> bool:
        """Whether there may be more. Whatever ends it, what is being stored is stored before."""
        ends = time.monotonic() + TURN_SECONDS
        try:
            for _ in range(MAX_BATCHES):
                if self._context.stopping.is_set() or not await self._paced_batch():
                    return False
                if time.monotonic() >= ends:
                    break
            return True
        finally:
            await self._stored()

    async def _paced_batch(self) -> bool:
        """What few have just written does not wait; the rest is done in short batches beside others' calls."""
        if self._small_only or not await self._context.is_slow(self._tenant_id):
            return await self._batch()
        await self._stored()
        async with self._context.part(self._tenant_id):
            more = await self._batch(most=SHORT_BATCH)
            await self._stored()
        return more

    async def _batch(self, *, most: int | None = None) -> bool:
        """Whether there may be more: that is known before the next claim, so that a few cost one."""
        is_storing = self._storing is not None
        batch = await self._embed_next(most)
        await self._stored()
        if batch is None and is_storing:
            # Storing locks the neighbours of what it stores, and a claim passes over what is locked.
            batch = await self._embed_next(most)
        if batch is None:
            return False
        self._storing = asyncio.create_task(self._store(batch))
        if not batch.whole:  # What it gives back may be claimed at once.
            await self._stored()
            return True
        return is_storing or not batch.is_last

    async def _embed_next(self, most: int | None) -> EmbeddingBatch | None:
        return await _embed_next(self._context, self._tenant_id, small_only=self._small_only, most=most)

    async def _store(self, batch: EmbeddingBatch) -> None:
        """Raises EmbeddingFailed where the embedder went away: what it gave is stored, and the rest is free again."""
        stored = await _store(self._context, self._tenant_id, batch)
        self.settled += stored.settled
        self.embedded += stored.embedded
        if batch.bare:
            _adjust_backoff(self._context, self._tenant_id, batch)

    async def _stored(self) -> None:
        if self._storing is not None:
            storing, self._storing = self._storing, None
            await storing


async def _embed_next(
    context: WorkerContext, tenant_id: UUID, *, small_only: bool = False, most: int | None = None
) -> EmbeddingBatch | None:
    """Claim a batch and embed it; None where nothing waits, or only for an embedder that is left alone."""
    for embedder in context.embedders:
        if context.backoff_of(embedder).waiting:
            continue
        if claimed := await _claim(context, tenant_id, embedder, small_only=small_only, most=most):
            bare = [passage for passage in claimed if passage.text is not None]
            outcome = await embed_bisecting(embedder, bare, seconds=context.settings.embedding_lease_seconds / 2)
            is_last = len(claimed) < claimed[0].places and embedder is context.embedders[-1]
            return EmbeddingBatch(embedder, claimed, outcome, is_last)
    return None


async def _claim(
    context: WorkerContext, tenant_id: UUID, embedder: Embedder, *, small_only: bool, most: int | None
) -> list[ClaimedPassage]:
    settings = context.settings
    limit = context.backoff_of(embedder).batch(
        tenant_id, min(settings.embedding_batch, most or settings.embedding_batch)
    )
    async with context.database.transaction(worker_caller(tenant_id), durable=False, keyed=True) as tx:
        left = await quotas.embeddings_left(tx, datetime.now(UTC))
        if left == 0:
            return []  # They wait for the next day: some sweep after midnight finds them.
        return await passages.claim_pending(
            tx,
            model=embedder.model,
            limit=limit if left is None else min(limit, left),
            lease_seconds=settings.embedding_lease_seconds,
            previous=_previous(context),
            small_only=small_only,
        )


def _previous(context: WorkerContext) -> str | None:
    return None if context.previous is None else context.previous.model


async def _store(context: WorkerContext, tenant_id: UUID, batch: EmbeddingBatch) -> StoredBatch:
    caller, model, claimed, now = worker_caller(tenant_id), batch.embedder.model, batch.claimed, datetime.now(UTC)
    async with context.database.transaction(caller, durable=False, keyed=True) as tx:
        # Another worker may have used the day up meanwhile: what is too many then goes back.
        outcome = batch.outcome.first(await quotas.take_embeddings(tx, now, len(batch.outcome.ids)))
        gone = await passages.lock_claimed_graphs(tx, claimed, model=model, previous=_previous(context))
        failed = [failed for failed in outcome.failed if failed.id not in gone]
        aside = await passages.record_failures(tx, failed, claimed)
        done = {*outcome.ids, *aside}
        settled = [p for p in claimed if (p.text is None or p.id in done) and p.id not in gone]
        embedded = await passages.settle(
            tx, settled, model=model, ids=outcome.ids, vectors=outcome.vectors, evidence=outcome.evidence
        )
        tried = {*done, *(passage.id for passage in failed)}
        back = [p for p in claimed if p.id in gone or (p.text is not None and p.id not in tried)]
        await passages.release_claimed_passages(tx, back)
        if embedded:
            await usage.count_embedded(tx, embedded, now)
    record_embedded(embedded, [(now - time_of(passage)).total_seconds() for passage in outcome.ids if embedded])
    if aside:
        record_refused(len(aside))
        log.warning("passages set aside: the embedder does not take them", tenant=str(tenant_id), passages=len(aside))
    return StoredBatch(len(settled), embedded)


def _adjust_backoff(context: WorkerContext, tenant_id: UUID, batch: EmbeddingBatch) -> None:
    """Bear in mind how the embedder and the tenant's texts did. Raises what stopped it."""
    backoff, outcome = context.backoff_of(batch.embedder), batch.outcome
    if outcome.aborted_by is not None:
        seconds = backoff.note_failure(outcome.aborted_by)
        log.info("the embedder is left alone", seconds=round(seconds, 1))
        raise outcome.aborted_by
    backoff.note_success()
    if outcome.smallest_failed_group is None:
        backoff.grow(tenant_id, context.settings.embedding_batch)
    else:
        backoff.shrink(tenant_id, outcome.smallest_failed_group)


async def count_terms(context: WorkerContext, tenant_id: UUID) -> None:
    """Count the words of the tenant's graphs that have changed much. Never raises: one must not keep the others."""
    changed = list[UUID]()
    with Attempt("words not counted", tenant_id):
        async with context.database.transaction(worker_caller(tenant_id), read_only=True) as tx:
            changed = await passages.graphs_to_count(tx, limit=MAX_COUNTED)
    for graph_id in context.until_stopping(changed):
        async with context.part(tenant_id):
            await _count_terms_of(context, tenant_id, graph_id)


async def _count_terms_of(context: WorkerContext, tenant_id: UUID, graph_id: UUID) -> None:
    with Attempt("words not counted", tenant_id, graph=str(graph_id)):
        async with context.database.transaction(worker_caller(tenant_id), durable=False) as tx:
            await passages.recount_terms(tx, graph_id)


async def _changed_or_left(context: WorkerContext, tenant_id: UUID) -> list[UUID]:
    """After a wake-up: the graphs whose words are to be counted anew.

    None where passages still wait, and an embedder may be asked: then the sweep is told, which counts them, too.
    """
    with Attempt("sweep not told", tenant_id):  # It comes by itself, later.
        async with context.database.transaction(worker_caller(tenant_id), read_only=True) as tx:
            if not context.waiting and await passages.any_pending(tx):
                context.backoff.due.set()
                return []
            return await passages.graphs_to_count(tx, limit=MAX_COUNTED)
    return []


async def _attempt_run(context: WorkerContext, tenant_id: UUID) -> bool:
    """Embed a tenant's passages, then count the words of what changed; whether there may be more to embed."""
    more = await _attempt_embedding(context, tenant_id, {})
    await count_terms(context, tenant_id)
    return more


async def _attempt_embedding(
    context: WorkerContext, tenant_id: UUID, carrier: Mapping[str, str], *, small_only: bool = False
) -> bool:
    """Embed a tenant's passages; whether there may be more."""
    if context.waiting:
        return False  # The sweep comes when the wait is over.
    with Attempt("passages not embedded", tenant_id):  # They come back when their lease ends.
        return await embed_passages(context, tenant_id, carrier, small_only=small_only)
    return False
