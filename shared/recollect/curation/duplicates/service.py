"""Use cases of duplicates: find similar entities, and merge those of each group."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from uuid import UUID

from recollect.curation.dismissals import service as dismissals
from recollect.curation.dismissals.model import NONE_DISMISSED, Dismissed
from recollect.curation.duplicates import store
from recollect.curation.duplicates.model import MIN_THRESHOLD, CompressionResult, DuplicateGroups
from recollect.curation.duplicates.similarity import (
    ROUNDING,
    DuplicateFinder,
    Profile,
    SimilarPair,
    similarity,
    star_clusters,
    without_dismissed,
)
from recollect.curation.merging.service import merge_nodes
from recollect.errors import TooLarge
from recollect.fairness.computing import Slices, in_one_slice
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Moment, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import naming
from recollect.postgres.transactions import Transaction

MAX_COMPARED = 10_000
"""Most entities that one call compares with each other; a larger graph takes a job."""

MAX_PROPOSED = 100_000
"""Most proposed pairs that one call reads, the most similar first."""

MAX_MERGED = 100
"""Most groups that one call merges."""


@dataclass(frozen=True, slots=True)
class DuplicateSearch:
    """The input of a search for duplicates in a graph, read at the moment `at`.

    `profiles` are the entities to compare, the oldest first. In a graph of more than MAX_COMPARED entities they are
    None; then `pairs` are the proposals of the last passes, and `ages` ranks their entities by age. No group has a pair
    that were `dismissed`.
    """

    threshold: float
    graph: Graph
    at: Moment | None = None
    profiles: Sequence[Profile] | None = ()
    pairs: Sequence[SimilarPair] = ()
    ages: Mapping[UUID, int] = field(default_factory=dict)
    dismissed: Dismissed = field(default_factory=dict)

    def groups(self) -> Slices[list[list[UUID]]]:
        """A computation: the groups of similar entities, in the order of their oldest, which comes first in each."""
        if self.profiles is None:
            return in_one_slice(lambda: star_clusters(self.pairs, self.ages, self.dismissed))
        return group_similar(self.profiles, self.threshold, self.dismissed)


async def open_search(view: GraphView, *, threshold: float, proposed: bool = True) -> DuplicateSearch:
    """Read the input of a search for similar entities.

    For more than MAX_COMPARED entities it is the proposals of the last passes. Raises TooLarge if no pass used so low a
    threshold, if the view is of the past, or if the caller cannot use proposals (`proposed` False).
    """
    if await store.count_comparable(view, limit=MAX_COMPARED + 1) <= MAX_COMPARED:
        profiles = await store.list_profiles(view)
        return DuplicateSearch(threshold, view.graph, view.at, profiles, dismissed=await _dismissed(view))
    if view.at is None and proposed and await is_compared_from(view.tx, view.graph, threshold):
        return await _search_of_proposals(view.tx, view.graph, threshold)
    raise _too_many(view.graph, threshold, view.at)


async def list_groups(
    tx: Transaction, search: DuplicateSearch, found: Sequence[Sequence[UUID]], *, offset: int, limit: int
) -> DuplicateGroups:
    """A page of the groups that were found, without entities that were deleted since."""
    page = found[offset : offset + limit]
    view = GraphView(tx, search.graph, search.at)
    labels = await naming.names_of(view, [node for group in page for node in group])
    named = [[labels[node] for node in group if node in labels] for group in page]
    return DuplicateGroups([group for group in named if len(group) > 1], len(found) > offset + limit)


async def is_compared_from(tx: Transaction, graph: Graph, threshold: float) -> bool:
    """Whether the passes found every pair this similar among all entities that did not change since."""
    compared_from = await store.find_compared_from(tx, graph)
    return compared_from is not None and compared_from <= max(threshold, MIN_THRESHOLD) + ROUNDING


async def needs_a_job(view: GraphView) -> bool:
    """Whether a graph has more entities than one call compares."""
    return await store.count_comparable(view, limit=MAX_COMPARED + 1) > MAX_COMPARED


async def merge_found(
    tx: Transaction, search: DuplicateSearch, operation: str, found: Sequence[Sequence[UUID]]
) -> CompressionResult:
    """Merge each group that was found into its oldest entity, as one revision; at most MAX_MERGED groups."""
    if not found:
        return CompressionResult([])
    # The lock is taken here, so that other writers do not wait while entities are compared.
    async with graphs.write_graph_of(tx, search.graph.id, operation) as revision:
        merged = await merge_groups(tx, revision, found[:MAX_MERGED], search.threshold)
    return replace(merged, more=len(found) > MAX_MERGED)


async def merge_groups(
    tx: Transaction, revision: Revision, groups: Sequence[Sequence[UUID]], threshold: float
) -> CompressionResult:
    """Merge into the first entity of each group the others that are still similar to it under the graph's lock."""
    profiles = await store.profiles_of(tx, revision.graph, [node for group in groups for node in group])
    dismissed = await dismissals.list_dismissed(tx, revision.graph)
    found = [without_dismissed(still_similar(group, profiles, threshold), dismissed) for group in groups]
    similar = [group for group in found if len(group) > 1]
    names = await _named(tx, revision.graph, similar)
    merges = [await merge_nodes(tx, revision, survivor, others) for survivor, *others in similar]
    return CompressionResult(
        names,
        known_observations=sum(merge.moved_observations - merge.added_observations for merge in merges),
        redirected_relations=sum(merge.redirected_relations for merge in merges),
    )


def still_similar(group: Sequence[UUID], profiles: Mapping[UUID, Profile], threshold: float) -> list[UUID]:
    """The first of a group and those others that are still similar to it; empty if the first was deleted."""
    first = profiles.get(group[0])
    found = [profiles[node] for node in group[1:] if node in profiles]
    if first is None:
        return []
    least = threshold - ROUNDING
    return [first.id, *(p.id for p in found if p.kind == first.kind and similarity(first, p) >= least)]


async def _named(tx: Transaction, graph: Graph, groups: Sequence[Sequence[UUID]]) -> list[list[str]]:
    labels = await naming.names_of(GraphView(tx, graph), [node for group in groups for node in group])
    return [[labels[node] for node in group] for group in groups]


async def _search_of_proposals(tx: Transaction, graph: Graph, threshold: float) -> DuplicateSearch:
    found = await store.list_duplicates(tx, graph, least=threshold - ROUNDING, offset=0, limit=MAX_PROPOSED)
    # An entity that was imported may be older than its id.
    created_at = {pair.node_id: pair.created_at for pair in found}
    created_at |= {pair.other_id: pair.other_created_at for pair in found}
    ages = {node: age for age, node in enumerate(sorted(created_at, key=lambda node: (created_at[node], node)))}
    pairs = [SimilarPair(pair.node_id, pair.other_id, pair.likeness) for pair in found]
    dismissed = await dismissals.list_dismissed(tx, graph)
    return DuplicateSearch(threshold, graph, None, None, pairs, ages, dismissed)


async def _dismissed(view: GraphView) -> Dismissed:
    """The dismissed pairs of a graph: also of its past, since they say nothing of a moment."""
    return await dismissals.list_dismissed(view.tx, view.graph) if view.is_there else NONE_DISMISSED


def _too_many(graph: Graph, threshold: float, at: Moment | None) -> TooLarge:
    if at is not None:
        return TooLarge(f"With as_of, at most {MAX_COMPARED} entities can be compared: leave as_of out", path="as_of")
    return TooLarge(
        f"Only a job can compare more than {MAX_COMPARED} entities: call propose_duplicates with this threshold, and "
        "then find_duplicates. To have it done regularly, set "
        f'{{"dedup": {{"mode": "propose", "threshold": {max(threshold, MIN_THRESHOLD):g}}}}} in the graph\'s '
        f"metadata, and start it at once by POST /v1/graphs/{graph.name}/deduplicate"
    )


def group_similar(
    profiles: Iterable[Profile], threshold: float, dismissed: Dismissed = NONE_DISMISSED
) -> Slices[list[list[UUID]]]:
    """A computation: groups of similar entities of one type, in the order of their first, with no dismissed pair."""
    profiles = list(profiles)
    ages = {profile.id: age for age, profile in enumerate(profiles)}
    groups = []
    for _, of_kind in groupby(sorted(profiles, key=lambda profile: profile.kind), key=lambda profile: profile.kind):
        same_kind = list(of_kind)
        found = yield from DuplicateFinder(same_kind, threshold).groups(dismissed)
        groups += [[same_kind[index].id for index in group] for group in found]
    return sorted(groups, key=lambda group: ages[group[0]])
