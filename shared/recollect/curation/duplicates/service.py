"""Use cases of duplicates: find entities that are alike, and make those of each group one."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from uuid import UUID

from recollect.curation.duplicates import store
from recollect.curation.duplicates.model import LEAST_THRESHOLD, CompressionResult, DuplicateGroups
from recollect.curation.duplicates.similarity import (
    ROUNDING,
    DuplicateFinder,
    Profile,
    SimilarPair,
    similarity,
    star_clusters,
)
from recollect.curation.merging.service import merge_nodes
from recollect.errors import TooLarge
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import service as nodes
from recollect.platform.db import Transaction

MAX_COMPARED = 10_000
"""Entities that one call compares with each other, at most; a larger graph takes a job."""

MAX_PROPOSED = 100_000
"""Pairs that a job proposed and one call looks at, at most, the most alike first."""

MAX_MERGED = 100
"""Groups that one call merges, at most."""


async def find_duplicates(view: GraphView, *, threshold: float, offset: int, limit: int) -> DuplicateGroups:
    """A page of the groups of entities that are alike, in the order of their oldest.

    The members of a group are alike with its first. Past MAX_COMPARED entities, what the last passes of jobs proposed;
    raises TooLarge where there was none, or none that looked for what is as little alike.
    """
    if view.at is None and await _was_compared_by_a_job(view.tx, view.graph, threshold):
        found = await _proposed_groups(view.tx, view.graph, threshold)
    else:
        found = await _groups(view, threshold)
    page = found[offset : offset + limit]
    labels = await nodes.names_of(view, [node for group in page for node in group])
    return DuplicateGroups([[labels[node] for node in group] for group in page], len(found) > offset + limit)


async def _was_compared_by_a_job(tx: Transaction, graph: Graph, threshold: float) -> bool:
    """Whether a graph is too large for one call, and passes have been over it from this threshold on."""
    count = await store.count_comparable(GraphView(tx, graph), limit=MAX_COMPARED + 1)
    return count > MAX_COMPARED and await is_compared_from(tx, graph, threshold)


async def is_compared_from(tx: Transaction, graph: Graph, threshold: float) -> bool:
    """Whether passes proposed or merged whatever is as alike, of all that did not change since."""
    compared_from = await store.find_compared_from(tx, graph)
    return compared_from is not None and compared_from <= max(threshold, LEAST_THRESHOLD) + ROUNDING


async def _proposed_groups(tx: Transaction, graph: Graph, threshold: float) -> list[list[UUID]]:
    """The groups of what the last passes proposed."""
    found = await store.list_duplicates(tx, graph, least=threshold - ROUNDING, offset=0, limit=MAX_PROPOSED)
    # An entity that was imported may be older than its id.
    began = {pair.node_id: pair.created_at for pair in found} | {pair.other_id: pair.other_created_at for pair in found}
    ages = {node: age for age, node in enumerate(sorted(began, key=lambda node: (began[node], node)))}
    return star_clusters([SimilarPair(pair.node_id, pair.other_id, pair.likeness) for pair in found], ages)


async def needs_a_job(view: GraphView) -> bool:
    """Whether a graph has more entities than one call compares."""
    return await store.count_comparable(view, limit=MAX_COMPARED + 1) > MAX_COMPARED


async def compress_graph(
    tx: Transaction, graph_name: str | None, operation: str, *, threshold: float
) -> CompressionResult:
    """Merge the entities of each group of duplicates into its oldest, as one revision.

    At most MAX_MERGED groups; raises TooLarge past MAX_COMPARED entities.
    """
    view = await graphs.view(tx, graph_name)
    found = await _groups(view, threshold)
    if not found:
        return CompressionResult([])
    # Only now, and not while the entities are compared, do other writers have to wait.
    async with graphs.write_graph_of(tx, view.graph.id, operation) as revision:
        merged = await merge_groups(tx, revision, found[:MAX_MERGED], threshold)
    return replace(merged, more=len(found) > MAX_MERGED)


async def merge_groups(
    tx: Transaction, revision: Revision, groups: Sequence[Sequence[UUID]], threshold: float
) -> CompressionResult:
    """Merge the entities of each group into its first, as far as they are alike with it under the graph's lock."""
    profiles = await store.profiles_of(tx, revision.graph, [node for group in groups for node in group])
    alike = [still for group in groups if len(still := still_similar(group, profiles, threshold)) > 1]
    names = await _named(tx, revision.graph, alike)
    merges = [await merge_nodes(tx, revision, kept, others) for kept, *others in alike]
    return CompressionResult(
        names,
        known_observations=sum(merge.moved_observations - merge.added_observations for merge in merges),
        redirected_relations=sum(merge.redirected_relations for merge in merges),
    )


def still_similar(group: Sequence[UUID], profiles: Mapping[UUID, Profile], threshold: float) -> list[UUID]:
    """Those of a group that are there and alike with its first; none where that is gone."""
    first = profiles.get(group[0])
    found = [profiles[node] for node in group[1:] if node in profiles]
    if first is None:
        return []
    enough = threshold - ROUNDING
    return [first.id, *(p.id for p in found if p.kind == first.kind and similarity(first, p) >= enough)]


async def _named(tx: Transaction, graph: Graph, groups: Sequence[Sequence[UUID]]) -> list[list[str]]:
    labels = await nodes.names_of(GraphView(tx, graph), [node for group in groups for node in group])
    return [[labels[node] for node in group] for group in groups]


async def _groups(view: GraphView, threshold: float) -> list[list[UUID]]:
    if await store.count_comparable(view, limit=MAX_COMPARED + 1) > MAX_COMPARED:
        if view.at is not None:
            raise TooLarge(f"With as_of, {MAX_COMPARED} entities at most are compared: leave it out", path="as_of")
        raise TooLarge(
            f"More than {MAX_COMPARED} entities are compared by a job: call propose_duplicates with this threshold, "
            f"and then find_duplicates. Or ask for it regularly in the graph's metadata, as "
            f'{{"dedup": {{"mode": "propose", "threshold": {max(threshold, LEAST_THRESHOLD):g}}}}}, and now by POST '
            f"/v1/graphs/{view.graph.name}/deduplicate"
        )
    profiles = await store.list_profiles(view)
    # In a thread: seconds of computing must not keep the other calls of this process waiting.
    return await asyncio.to_thread(group_similar, profiles, threshold)


def group_similar(profiles: Iterable[Profile], threshold: float) -> list[list[UUID]]:
    """Groups of entities of one type that are alike, in the order of their first."""
    profiles = list(profiles)
    ages = {profile.id: age for age, profile in enumerate(profiles)}
    groups = []
    for _, of_kind in groupby(sorted(profiles, key=lambda profile: profile.kind), key=lambda profile: profile.kind):
        alike = list(of_kind)
        groups += [[alike[place].id for place in group] for group in DuplicateFinder(alike, threshold).groups()]
    return sorted(groups, key=lambda group: ages[group[0]])
