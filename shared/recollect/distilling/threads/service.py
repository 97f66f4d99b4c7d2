"""Use cases of distilled threads: start a job, read a page, write what a model found in it, revoke it all.

A model's answer becomes facts of this graph and thread, and nothing else. A fact that the graph has already is left as
it is. What was read is compared with what is there when the facts are written, under the graph's lock: nothing is
derived from a turn that was forgotten or changed in the meantime.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from recollect.distilling.language_models import service as language_models
from recollect.distilling.threads import store
from recollect.distilling.threads.model import (
    CONTEXT_BYTES,
    CONTEXT_TURNS,
    MAX_THREADS,
    MAX_TURNS_OF_FACT,
    SOURCE,
    FoundFact,
    TurnBatch,
    distilling_of,
    fitting,
    sequence_of,
)
from recollect.errors import Conflict, ErrorCode, InvalidInput, NotFound, Unavailable
from recollect.graph.derivations import service as derivations
from recollect.graph.derivations.model import Derivation, DerivedFilter
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import ACTIVE, NewFact, NodeHead, Rewrite
from recollect.graph.relations import service as relations
from recollect.jobs import service as jobs
from recollect.jobs.kinds import DISTIL_THREAD
from recollect.jobs.model import MAX_PENDING_FOR_SWEEPS, Job, JobBounds, NewJob
from recollect.memory import links
from recollect.postgres.transactions import Transaction
from recollect.settings import Settings

NO_TURN = UUID(int=0)
"""An id before every turn."""

REVOKE = "revoke_distilled"
"""The name of the operation in the log of a graph."""

REMOVED_AT_ONCE = 500
"""Facts that one statement removes, at most."""

MAX_REVOKED = 10_000
"""Facts that one call revokes, at most."""

MAX_SAME = 20
"""Facts with the same text that are looked at, at most: they are in different threads."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the facts of a page: how many are new, and how many were known. `more`: other turns follow."""

    new: int
    known: int
    more: bool


@dataclass(frozen=True, slots=True)
class Revoked:
    """How many facts were revoked, and whether more may be left."""

    facts: int
    more: bool


async def start(tx: Transaction, graph_name: str, thread: str, settings: Settings, *, only_new: bool = False) -> Job:
    """Start a job that distils a thread: anew, or (`only_new`) the turns that no job has read yet.

    Returns the job of the thread that is under way instead, except one that waits for the conversation to be quiet, and
    one for the new turns where all are to be read: those give way. Raises NotFound for an unknown graph or thread,
    Conflict where there is no language model or the tenant has too many jobs, Forbidden, and InvalidInput where the
    graph's whitelist allows no facts.
    """
    graph = await graphs.get_graph(tx, graph_name)
    await language_models.require_on(tx, settings)
    graph.require_kind(None, "thread")
    sequence = sequence_of(thread)
    if not await store.list_turns(tx, graph, sequence, after=NO_TURN, limit=1):
        raise NotFound("There is no conversation of that name in this graph.", code=ErrorCode.THREAD_NOT_FOUND)
    new = _job(graph, sequence, {"only_new": True} if only_new else {})
    other = await jobs.find_equal(tx, new)
    if other is not None and ("quiet" in other.cursor or (other.cursor.get("only_new") and not only_new)):
        await jobs.cancel_job(tx, other.id, JobBounds.of(settings))
    await _begin(tx, graph, sequence)
    return await jobs.schedule(tx, new)


async def start_by_itself(tx: Transaction, graph: Graph, thread: str, settings: Settings) -> Job | None:
    """Start a job for the new turns of a thread if the graph's metadata asks for it; None: it does not, or none is due.

    Nothing is started without a language model, or while the tenant has many jobs: the turns stay to be read.
    """
    with suppress(InvalidInput, Conflict):  # Metadata of before that cannot be read; too many jobs.
        config = distilling_of(graph.metadata)
        if config.mode == "auto" and graph.kind_whitelist is None and await language_models.is_on(tx, settings):
            sequence = sequence_of(thread)
            await _begin(tx, graph, sequence)
            new = _job(graph, sequence, {"only_new": True, "quiet": config.quiet_seconds})
            return await jobs.schedule(tx, new, most_pending=MAX_PENDING_FOR_SWEEPS)
    return None


async def read_page(tx: Transaction, job: Job, *, limit: int) -> TurnBatch:
    """The next page of a job's thread: `limit` turns at most, as many as have room. Raises NotFound for the graph."""
    graph, sequence = await _graph_of(tx, job), sequence_of_job(job)
    after = await _position(tx, graph, sequence, job)
    listed = await store.list_turns(tx, graph, sequence, after=after, limit=limit + 1)
    turns = fitting(listed[:limit])
    before = await store.list_turns_before(tx, graph, sequence, until=after, limit=CONTEXT_TURNS) if listed else []
    context = [turn for turn in fitting(before, most=CONTEXT_BYTES) if len(turn.text.encode()) <= CONTEXT_BYTES]
    total = job.total or await store.count_turns(tx, graph, sequence, after=after)
    return TurnBatch(graph, sequence, turns, context[::-1], len(listed) > len(turns), total)


async def write_facts(
    tx: Transaction, job: Job, page: TurnBatch, facts: Sequence[FoundFact], model: str
) -> Written | None:
    """Write what a model found in a page, as one revision, and note that the page was read.

    Nothing is written of a job that was cancelled in the meantime: what it found may just have been revoked. Raises
    Unavailable where a turn of the page is not as it was read: the page is to be read again.
    """
    async with graphs.write_graph_of(tx, page.graph.id, DISTIL_THREAD) as revision:
        if (await jobs.get_job(tx, job.id)).cancel_requested:
            return None
        await _require_unchanged(tx, revision.graph, page)
        new = await _write(tx, revision, job, page, facts, model)
        until = page.turns[-1].id
        await store.note_progress(tx, revision.graph, page.sequence, until)
        await store.forget_oldest(tx, revision.graph, most=MAX_THREADS)
        more = bool(await store.list_turns(tx, revision.graph, page.sequence, after=until, limit=1))
    return Written(new, len(facts) - new, more)


async def replace_former(tx: Transaction, job: Job) -> tuple[int, bool]:
    """Remove facts that former jobs derived from the thread and this one did not; how many, and whether more are left.

    Those that were changed since stay.
    """
    graph = await _graph_of(tx, job)
    former = DerivedFilter(sequence_of_job(job), except_job=job.id, unchanged=True)
    async with graphs.write_graph_of(tx, graph.id, DISTIL_THREAD) as revision:
        ids = await derivations.list_facts(tx, graph, former, limit=REMOVED_AT_ONCE)
        await relations.delete_nodes(tx, revision, ids)
    return len(ids), len(ids) == REMOVED_AT_ONCE


async def revoke(
    tx: Transaction, graph_name: str, settings: Settings, *, thread: str | None = None, job_id: UUID | None = None
) -> Revoked:
    """Forget all facts that were derived from a thread, or by a job, in one revision; those changed since, too.

    A job that is under way is cancelled. The turns stay, and count as read. Raises NotFound for an unknown graph,
    InvalidInput unless exactly one of thread and job is given.
    """
    if (thread is None) == (job_id is None):
        raise InvalidInput("Give either thread or job", path="thread")
    graph = await graphs.get_graph(tx, graph_name)
    sequence = None if thread is None else sequence_of(thread)
    async with graphs.write_graph_of(tx, graph.id, REVOKE) as revision:
        await _cancel(tx, graph, sequence, job_id, JobBounds.of(settings))  # After the graph's lock, as steps do.
        ids = await derivations.list_facts(tx, graph, DerivedFilter(sequence, job_id), limit=MAX_REVOKED)
        for start in range(0, len(ids), REMOVED_AT_ONCE):
            await relations.delete_nodes(tx, revision, ids[start : start + REMOVED_AT_ONCE])
    return Revoked(len(ids), len(ids) == MAX_REVOKED)


def sequence_of_job(job: Job) -> UUID:
    """The thread of a job."""
    return UUID(job.arguments["thread"])


async def _begin(tx: Transaction, graph: Graph, sequence: UUID) -> None:
    """Note that a thread is to be read, long before anything is derived from it.

    From then on, whoever forgets turns of the graph looks for facts that go with them (`Revision.has_derived`).
    """
    await store.insert_progress(tx, graph, sequence, NO_TURN)
    await store.forget_oldest(tx, graph, most=MAX_THREADS)


async def _graph_of(tx: Transaction, job: Job) -> Graph:
    assert job.graph_id is not None
    return await graphs.graph_of(tx, job.graph_id)


async def _position(tx: Transaction, graph: Graph, sequence: UUID, job: Job) -> UUID:
    """The turn after which a job goes on."""
    if "after" in job.cursor:
        return UUID(job.cursor["after"])
    if job.cursor.get("only_new"):
        return await store.find_progress(tx, graph, sequence) or NO_TURN
    return NO_TURN


def _job(graph: Graph, sequence: UUID, cursor: dict[str, Any]) -> NewJob:
    # The thread is named by its id: a job holds no text. What it reads is in the cursor, so that a thread has one job.
    return NewJob(DISTIL_THREAD, graph.id, {"thread": str(sequence)}, cursor=cursor)


async def _cancel(tx: Transaction, graph: Graph, sequence: UUID | None, job_id: UUID | None, bounds: JobBounds) -> None:
    if sequence is not None:
        found = await jobs.find_equal(tx, _job(graph, sequence, {}))
    else:
        assert job_id is not None
        found = (await jobs.find_jobs(tx, [job_id])).get(job_id)
    if found is not None and (found.kind, found.graph_id) == (DISTIL_THREAD, graph.id) and not found.is_finished:
        await jobs.cancel_job(tx, found.id, bounds)


async def _require_unchanged(tx: Transaction, graph: Graph, page: TurnBatch) -> None:
    read = [*page.context, *page.turns]
    heads = await nodes.read_heads(tx, graph, [turn.id for turn in read])
    for turn in read:
        head = heads.get(turn.id)
        if head is None or (head.version, head.status) != (turn.version, ACTIVE):
            raise Unavailable("The conversation changed meanwhile. It is read again.", code=ErrorCode.BUSY)


async def _write(
    tx: Transaction, revision: Revision, job: Job, page: TurnBatch, facts: Sequence[FoundFact], model: str
) -> int:
    """Write the facts that are not known; return how many are new."""
    if not facts:
        return 0
    same = await store.find_facts(tx, revision.graph, [fact.text for fact in facts], revision.at, limit=MAX_SAME)
    ids = [fact_id for found in same.values() for fact_id in found]
    heads, derived = await nodes.read_heads(tx, revision.graph, ids), await derivations.find(tx, ids)
    new, renewed = [], []
    for fact in facts:
        own = next((derived[i] for i in same.get(fact.text, ()) if _is_of(derived.get(i), page)), None)
        if own is not None and own.version == heads[own.fact_id].version:
            renewed.append((fact, own))
        elif own is None and not any(heads[i].status == ACTIVE for i in same.get(fact.text, ()) if i in heads):
            new.append(fact)
    await _create(tx, revision, job, page, new, model)
    await _renew(tx, revision, job, renewed, heads, model)
    return len(new)


def _is_of(derivation: Derivation | None, page: TurnBatch) -> bool:
    return derivation is not None and derivation.sequence == page.sequence


async def _create(
    tx: Transaction, revision: Revision, job: Job, page: TurnBatch, facts: Sequence[FoundFact], model: str
) -> None:
    if not facts:
        return
    made = await nodes.create_facts(tx, revision, [_new_fact(fact, job, page, model) for fact in facts])
    for node, fact in zip(made, facts, strict=True):
        await links.link_mentions(tx, revision, node.id, fact.text)
    await derivations.record(
        tx,
        revision.graph,
        [
            Derivation(node.id, page.sequence, job.id, 1, [turn.id for turn in fact.turns])
            for node, fact in zip(made, facts, strict=True)
        ],
    )


async def _renew(
    tx: Transaction,
    revision: Revision,
    job: Job,
    renewed: Sequence[tuple[FoundFact, Derivation]],
    heads: Mapping[UUID, NodeHead],
    model: str,
) -> None:
    """Let facts that were derived before rest on the turns of now, and also on those of before by this job."""
    rewrites, after = [], []
    for fact, before in renewed:
        found = [turn.id for turn in fact.turns]
        former = before.turn_ids if before.job_id == job.id else ()
        turn_ids = sorted({*former, *found})[-MAX_TURNS_OF_FACT:]
        if turn_ids == list(former):
            continue
        head = heads[before.fact_id]
        expires_at = fact.expires_at if not former else _later(head, fact)
        rewrites.append(
            Rewrite(head, replace(head.fields, metadata=_metadata(job, model, turn_ids), expires_at=expires_at))
        )
        after.append(replace(before, job_id=job.id, version=before.version + 1, turn_ids=turn_ids))
    await nodes.rewrite(tx, revision, rewrites)
    await derivations.record(tx, revision.graph, after)


def _later(head: NodeHead, fact: FoundFact) -> datetime | None:
    if head.expires_at is None or fact.expires_at is None:
        return None
    return max(head.expires_at, fact.expires_at)


def _new_fact(fact: FoundFact, job: Job, page: TurnBatch, model: str) -> NewFact:
    return NewFact(
        fact.text,
        thread=page.turns[0].thread,
        said_at=fact.said_at,
        expires_at=fact.expires_at,
        source=SOURCE,
        metadata=_metadata(job, model, [turn.id for turn in fact.turns]),
    )


def _metadata(job: Job, model: str, turn_ids: Sequence[UUID]) -> dict[str, Any]:
    return {"distilled": {"model": model, "job": str(job.id), "turns": [str(turn_id) for turn_id in turn_ids]}}
