"""Use cases of deduplication: a pass over a graph in bounded steps, which proposes or merges similar entities.

The tables hold the work to do. An entity is compared again only if it, or one of its observations, changed since
`last_dedup_at`. If earlier passes used a higher threshold, or only proposed pairs that are to be merged now, every
entity is compared again. A step reads in one transaction, compares in none, and writes in another. That one holds the
graph's lock, under which entities are compared once more before they are merged. The cursor is the time at which the
pass began: later changes are left to the next pass.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from recollect.caller import Caller
from recollect.curation.dismissals import service as dismissals
from recollect.curation.duplicates import store
from recollect.curation.duplicates.model import (
    MIN_THRESHOLD,
    Deduplication,
    DedupStep,
    Mode,
    RequestedPass,
    ScanCursor,
    ScanPosition,
)
from recollect.curation.duplicates.service import MAX_MERGED, is_compared_from, merge_groups
from recollect.curation.duplicates.similarity import (
    ROUNDING,
    SHORT,
    DuplicateFinder,
    Profile,
    SimilarPair,
    star_clusters,
    work_of,
)
from recollect.errors import Conflict, InvalidInput, TooLarge
from recollect.fairness import computing
from recollect.fairness.computing import Slices
from recollect.graph.entities import service as entities
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import NewEdge
from recollect.jobs import service as jobs
from recollect.jobs.kinds import DEDUPLICATE
from recollect.jobs.model import MAX_PENDING_FOR_SWEEPS, Job, NewJob
from recollect.postgres.database import Database
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction

RETRY_AFTER = timedelta(hours=1)
"""How long after the end of a job, whatever its result, no new pass begins in its graph."""

SIMILAR_TO = "SIMILAR_TO"
"""The type of a relation between similar entities, from the younger to the older."""

MAX_PROFILES = 200_000
"""Most entities of one type that a step holds in memory (about 1 kB each)."""

MAX_STEP = 3_000
"""Most entities that one step compares with all others of their type: seconds of a core."""

MAX_COMPARISONS = 300_000_000
"""Most pairs of short names in one step, if no pair can be excluded: six seconds of a core."""

MAX_STEP_SECONDS = 60.0
"""Most processor time of one step: ten times what its pairs should take."""

MAX_PAIRS = 20
"""Most pairs that are kept of one entity, the most similar first."""

MAX_CANDIDATES = 1_000
"""Most entities with a similar name and nothing else in common with which one is compared, the nearest names first."""


def deduplication_of(metadata: Mapping[str, Any]) -> Deduplication:
    """The `dedup` of a graph's metadata. Raises InvalidInput if it cannot be read."""
    try:
        return msgspec.convert(metadata.get("dedup", {}), Deduplication)
    except msgspec.ValidationError as error:
        message, _, position = str(error).partition(" - at `$")
        raise InvalidInput(message, path=f"metadata.dedup{position.rstrip('`')}") from None


def require_readable(metadata: Mapping[str, Any]) -> None:
    """Raise InvalidInput if the `dedup` of metadata cannot be read."""
    deduplication_of(metadata)


_BEGINNING = ScanPosition(-(2**63), UUID(int=0))


async def tenants_with_deduplication_due(db: Database) -> list[UUID]:
    """Active tenants with graphs for which a pass is due."""
    async with db.system() as session:
        return await store.tenants_with_deduplication_due(session)


async def graphs_with_deduplication_due(tx: Transaction) -> list[UUID]:
    """The tenant's graphs for which a pass is due, longest waiting first. Unreadable configurations are left out."""
    now = datetime.now(UTC)
    return [
        graph.id
        for graph in await store.list_deduplications(tx, limit=graphs.MAX_GRAPHS)
        if (every := _time_between(graph.metadata)) and (graph.finished_at is None or graph.finished_at + every <= now)
    ]


async def start_pass(tx: Transaction, graph_name: str, request: RequestedPass | None = None) -> Job:
    """Start a job for a pass over a graph now, or return an equal job that is under way.

    `request` None: the pass has the mode of the graph's metadata, or proposes if that says nothing. Raises NotFound,
    Forbidden, InvalidInput for a configuration that cannot be read or a threshold that is too low, Conflict if the
    tenant has too many jobs.
    """
    graph = await graphs.get_graph(tx, graph_name)
    if request is not None:
        if request.threshold < MIN_THRESHOLD:
            raise InvalidInput(f"A job's threshold is at least {MIN_THRESHOLD}", path="threshold")
        return await jobs.schedule(tx, NewJob(DEDUPLICATE, graph.id, asdict(request)))
    arguments = {"mode": "propose"} if deduplication_of(graph.metadata).mode == "off" else {}
    return await jobs.schedule(tx, NewJob(DEDUPLICATE, graph.id, arguments))


async def schedule_passes(tx: Transaction) -> int:
    """Start a job for each due graph of the tenant, until it has MAX_PENDING_FOR_SWEEPS; return how many were started.

    A graph whose last job ended within RETRY_AFTER waits: a failing job would fail again and again.
    """
    due = await graphs_with_deduplication_due(tx)
    busy = await jobs.busy_graphs(tx, DEDUPLICATE, due, since=datetime.now(UTC) - RETRY_AFTER)
    started = 0
    for graph_id in due:
        if graph_id in busy:
            continue
        try:
            await jobs.schedule(tx, NewJob(DEDUPLICATE, graph_id), most_pending=MAX_PENDING_FOR_SWEEPS)
        except Conflict:
            break
        started += 1
    return started


@dataclass(frozen=True, slots=True)
class ComparisonStep:
    """The input of one step of a pass: entities of one type, and which of them are compared.

    `seen`: the graph's last write before anything was read; `cursor`: where the step begins.
    """

    graph: Graph
    mode: Mode
    threshold: float | None
    config: Deduplication
    seen: datetime
    cursor: ScanCursor
    profiles: Sequence[Profile] = ()
    ages: Mapping[UUID, int] = field(default_factory=dict)
    compared: Sequence[ScanPosition] = ()

    def pairs(self) -> Slices[list[SimilarPair]]:
        """A computation: the pairs of each compared entity with entities similar to it."""
        indexes = [self.ages[position.node_id] for position in self.compared if position.node_id in self.ages]
        return pairs_of(self.profiles, indexes, self.config.threshold)


async def deduplicate(
    db: TenantDatabase,
    caller: Caller,
    graph_id: UUID,
    cursor: ScanCursor | None = None,
    *,
    mode: Mode = "off",
    threshold: float | None = None,
    limit: int = MAX_STEP,
) -> tuple[ComparisonStep, list[SimilarPair]]:
    """Read the input of a step of a pass, and compute its pairs outside any transaction; `settle` writes them.

    It compares up to `limit` entities of one type. `mode` counts if the graph's metadata has none, or if a
    `threshold` is given. Every entity is compared again if a `threshold` is given, or if earlier passes used a higher
    one or only proposed pairs that are to be merged. Raises NotFound, InvalidInput for a configuration that cannot be
    read, TooLarge for more than MAX_PROFILES entities of a type, or if comparing them takes too long.
    """
    async with db.transaction(caller, read_only=True) as tx:
        step = await _open_step(tx, await graphs.graph_of(tx, graph_id), cursor, mode, threshold, limit)
    pairs = await computing.compute(
        caller.tenant_id, step.pairs(), seconds=MAX_STEP_SECONDS, advice="Raise the threshold."
    )
    return step, pairs


async def settle(tx: Transaction, step: ComparisonStep, pairs: Sequence[SimilarPair]) -> DedupStep:
    """Write the pairs that a step found; return the cursor of the next step, None if there is nothing left to compare.

    Entities that changed since they were read are due again, and entities are compared once more under the graph's lock
    before they are merged. If the graph's configuration changed since, nothing is written and the step is repeated.
    """
    graph = await graphs.graph_of(tx, step.graph.id)
    if _effective_config(deduplication_of(graph.metadata), step.mode, step.threshold) != step.config:
        return DedupStep(0, 0, 0, step.cursor)
    if step.config.mode == "off":
        return DedupStep(0, 0, 0, None)
    cursor = step.cursor
    if not step.compared:
        await store.finish_deduplication(tx, graph, threshold=cursor.threshold if cursor.after else None)
        return DedupStep(0, 0, 0, None)
    ids = [position.node_id for position in step.compared]
    proposed, merged, is_complete = await _settle(tx, graph, step.config, ids, pairs, step.ages, step.seen)
    if cursor.after is not None and is_complete:  # Else the same entities follow again, without the merged ones.
        cursor = replace(cursor, after=step.compared[-1])
    return DedupStep(len(step.compared), proposed, merged, cursor)


async def _open_step(
    tx: Transaction, graph: Graph, cursor: ScanCursor | None, mode: Mode, threshold: float | None, limit: int
) -> ComparisonStep:
    config = _effective_config(deduplication_of(graph.metadata), mode, threshold)
    # Read before anything else: every change that this step does not see is later than this, and still due.
    seen = await graphs.last_written_at(tx, graph)
    if cursor is None:
        covers_all = config.mode != "off" and (threshold is not None or await _must_cover_all(tx, graph, config))
        cursor = ScanCursor(seen, _BEGINNING if covers_all else None)
    cursor = replace(
        cursor, threshold=max(cursor.threshold, config.threshold)
    )  # The configuration may change between steps.
    step = ComparisonStep(graph, mode, threshold, config, seen, cursor)
    if config.mode == "off":
        return step
    kind, due = await store.find_uncompared(tx, graph, until=cursor.until, after=cursor.after, limit=limit)
    if not due:
        return step
    profiles = await _profiles(tx, graph, kind)
    ages = {profile.id: age for age, profile in enumerate(profiles)}
    return replace(step, profiles=profiles, ages=ages, compared=_within_a_step(due, profiles, ages))


def _effective_config(configured: Deduplication, mode: Mode, threshold: float | None) -> Deduplication:
    if threshold is not None:
        return replace(configured, mode=mode, threshold=threshold)
    return replace(configured, mode=mode) if configured.mode == "off" else configured


async def _must_cover_all(tx: Transaction, graph: Graph, config: Deduplication) -> bool:
    """Whether to compare every entity: earlier passes used a higher threshold, or did not merge."""
    if not await is_compared_from(tx, graph, config.threshold):
        return True
    least = config.threshold - ROUNDING
    return config.mode == "merge" and bool(await store.list_duplicates(tx, graph, least=least, offset=0, limit=1))


async def _profiles(tx: Transaction, graph: Graph, kind: str) -> list[Profile]:
    """The profiles of the entities of a type, the oldest first."""
    if await store.count_of_kind(tx, graph, kind, limit=MAX_PROFILES + 1) > MAX_PROFILES:
        raise TooLarge(
            f"There are more than {MAX_PROFILES} entities of one type: too many to compare", path="metadata.dedup"
        )
    return await store.list_profiles(GraphView(tx, graph), kind=kind)


def _within_a_step(
    due: Sequence[ScanPosition], profiles: Sequence[Profile], ages: Mapping[UUID, int]
) -> Sequence[ScanPosition]:
    """The first of these entities, as many as one step can compare with all others of their type; at least one."""
    left = MAX_COMPARISONS * SHORT * SHORT // max(work_of(profiles), 1)
    for number, position in enumerate(due):
        left -= work_of([profiles[ages[position.node_id]]]) if position.node_id in ages else 0
        if left < 0:
            return due[: max(number, 1)]
    return due


def pairs_of(profiles: Sequence[Profile], indexes: Sequence[int], threshold: float) -> Slices[list[SimilarPair]]:
    """A computation: the pairs of the entities at these positions with similar ones, MAX_PAIRS of each, nearest
    first."""
    pairs = []
    for position, others in (yield from DuplicateFinder(profiles, threshold).alike(indexes, most=MAX_CANDIDATES)):
        nearest = sorted(others, key=lambda other: (-other[1], other[0]))[:MAX_PAIRS]
        pairs += [SimilarPair(profiles[position].id, profiles[other].id, min(score, 1.0)) for other, score in nearest]
    return pairs


async def _settle(
    tx: Transaction,
    graph: Graph,
    config: Deduplication,
    due: Sequence[UUID],
    pairs: Sequence[SimilarPair],
    ages: Mapping[UUID, int],
    seen: datetime,
) -> tuple[int, int, bool]:
    """Write the pairs of a comparison; return how many were proposed, how many entities merged, and if that was all."""
    merged = 0
    left = set[UUID]()
    if config.mode == "merge":
        groups = star_clusters(pairs, ages, await dismissals.list_dismissed(tx, graph))
        left = {node for group in groups[MAX_MERGED:] for node in group}
        for group in groups[:MAX_MERGED]:  # Each merge is a revision of its own, so that each can be undone alone.
            async with graphs.write_graph_of(tx, graph.id, DEDUPLICATE) as revision:
                try:
                    done = await merge_groups(tx, revision, [group], config.threshold)
                except TooLarge:  # They can be merged when they are smaller.
                    if not revision.is_empty:
                        raise
                    continue
            merged += sum(len(names) - 1 for names in done.merged)
    async with graphs.write_graph_of(tx, graph.id, DEDUPLICATE) as revision:
        await store.raise_compared_from(tx, graph, config.threshold)
        proposed = await _propose(tx, revision, config, due, pairs, ages)
        await entities.mark_compared(tx, revision, [node for node in due if node not in left], seen)
    return proposed, merged, not left


async def _propose(
    tx: Transaction,
    revision: Revision,
    config: Deduplication,
    due: Sequence[UUID],
    pairs: Sequence[SimilarPair],
    ages: Mapping[UUID, int],
) -> int:
    """Replace the earlier proposals of the entities `due` by those of these pairs whose entities are both live."""
    await store.remove_duplicates(tx, revision.graph, due)
    if config.mode != "propose":
        return 0
    live = await store.insert_duplicates(tx, revision.graph, pairs, revision.at)
    if config.similar_to:
        await relations.put_edges(tx, revision, [_edge(pair, ages) for pair in live])
    return len(live)


def _edge(pair: SimilarPair, ages: Mapping[UUID, int]) -> NewEdge:
    older, younger = sorted((pair.node_id, pair.other_id), key=ages.__getitem__)
    return NewEdge(younger, older, SIMILAR_TO, metadata={"likeness": round(pair.likeness, 4)})


def _time_between(metadata: Mapping[str, Any]) -> timedelta | None:
    try:
        config = deduplication_of(metadata)
    except InvalidInput:
        return None
    return None if config.mode == "off" else timedelta(hours=config.every_hours)
