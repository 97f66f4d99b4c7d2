"""Plan how to undo changes: pure functions of what the revisions recorded.

Lineages, observations, relations and aliases are undone one by one. A lineage gets, by a new version, the state that it
had before the first undone version; if it had several heads then, it gets all of them back. What the changes added is
removed. What they removed comes back (relations under new ids). A changed observation is both: one version is removed
and one comes back. What somebody else changed later stays as it is, and the plan says so.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from uuid import UUID

from recollect.curation.undo.model import (
    NodeBefore,
    ObservationVersion,
    Reason,
    RelationVersion,
    Sibling,
    Skipped,
    TouchedNode,
    TouchedState,
    UndoContext,
    UndoPlan,
    fields_of,
)
from recollect.graph.graphs.model import Graph
from recollect.graph.nodes.model import NodeFields, RestoredNode, unique
from recollect.graph.observations.model import Observation
from recollect.graph.relations.model import Edge

SLICE = 100
"""Lineages that are planned before other calls have their turn."""


def plan_undo(graph: Graph, footprint: TouchedState, around: UndoContext) -> Generator[None, None, UndoPlan]:
    """A computation: what undoing the changes does, and what it leaves alone. Its time grows with their number."""
    plan = UndoPlan()
    known = {t.id for t in footprint.touched} | {s.observation.id for s in footprint.statements}
    known |= {version.edge.id for version in footprint.relations}
    plan.skipped.extend(Skipped(i, Reason.COMPACTED) for i in sorted(footprint.ids - known))
    for place, touched in enumerate(footprint.touched):
        if place % SLICE == 0:
            yield
        _plan_node(graph, touched, footprint.before.get(touched.id), footprint.siblings.get(touched.id, ()), plan)
    _leave_taken_names(footprint, around.owners, plan)
    yield
    _leave_cycles(footprint, around.parents, plan)
    yield
    living = set(around.living) - set(plan.deleted) | {restored.id for restored in plan.restored}
    yield from _plan_observations(footprint, living, plan)
    yield
    _plan_relations(footprint, living, plan)
    yield
    _plan_aliases(footprint, living, plan)
    return plan


def _plan_node(
    graph: Graph, touched: TouchedNode, before: NodeBefore | None, siblings: Sequence[Sibling], plan: UndoPlan
) -> None:
    if touched.placed and (before.deleted if before else not touched.existed):
        # A placeholder is removed with its last relation. Relations that others made keep it, and its name.
        if touched.lives and touched.placeholder and not touched.related:
            plan.deleted.append(touched.id)
        return
    if before and before.expired and not before.deleted and (touched.expired or not touched.lives):
        return  # It has expired: nobody sees it now, and nobody would see it restored.
    reason = _why_not(graph, touched, before, siblings)
    if reason is not None:
        plan.skipped.append(Skipped(touched.id, reason))
    elif before is None or before.deleted:
        if touched.lives and not touched.placeholder:
            plan.deleted.append(touched.id)
    elif not _is_as_before(touched, before, siblings):
        plan.restored.append(_restored(touched, before, siblings))


def _is_as_before(touched: TouchedNode, before: NodeBefore, siblings: Sequence[Sibling]) -> bool:
    stood = [fields_of(sibling) for sibling in siblings if sibling.stood]
    stands = [fields_of(sibling) for sibling in siblings if sibling.stands]
    same = fields_of(before).says(fields_of(touched)) and before.began_at == touched.created_at
    return touched.lives and same and len(stood) == len(stands) and all(map(NodeFields.says, stood, stands))


def _why_not(
    graph: Graph, touched: TouchedNode, before: NodeBefore | None, siblings: Sequence[Sibling]
) -> Reason | None:
    if touched.changed_later:
        return Reason.CHANGED_LATER
    if touched.existed and before is None:
        return Reason.COMPACTED
    goes = (before is None or before.deleted) and touched.lives and not touched.placeholder
    if goes and (touched.said or touched.related or touched.above):
        return Reason.CHANGED_LATER
    if before is None or before.deleted:
        return None
    if before.placeholder and not touched.placeholder and (touched.said or touched.above):
        return Reason.CHANGED_LATER
    return None if _may_be(graph, touched, before, siblings) else Reason.KIND_NOT_ALLOWED


def _may_be(graph: Graph, touched: TouchedNode, before: NodeBefore, siblings: Sequence[Sibling]) -> bool:
    """Whether the whitelist allows the kinds that a lineage had. The kind that it has now is allowed in any case."""
    if graph.kind_whitelist is None or before.placeholder:
        return True
    kept = {touched.kind} if touched.lives else set()
    kinds = {before.kind, *(sibling.kind for sibling in siblings if sibling.stood)}
    return kinds <= kept.union(graph.kind_whitelist)


def _leave_taken_names(footprint: TouchedState, owners: Mapping[str, UUID], plan: UndoPlan) -> None:
    """Skip each lineage whose old name another node has, or another restored lineage gets.

    A skipped lineage keeps its present name. If that is the old name of another lineage, this one is skipped, too.
    """
    kept = {t.id: t.name for t in footprint.touched if t.lives and t.name}
    coming = {restored.id for restored in plan.restored}
    moved = coming | set(plan.deleted)
    taken = {name: owner for name, owner in owners.items() if owner not in moved}
    newly = {
        restored.id
        for restored in plan.restored
        if (name := restored.fields.name) is not None and taken.setdefault(name, restored.id) != restored.id
    }
    refused: set[UUID] = set()
    while newly:
        refused |= newly
        plan.skipped.extend(Skipped(i, Reason.NAME_TAKEN) for i in sorted(newly))
        owned = {kept[i]: i for i in newly if i in kept}
        newly = {taken[name] for name in owned if taken.get(name) in coming} - refused
        taken |= owned
    if refused:
        plan.restored[:] = [restored for restored in plan.restored if restored.id not in refused]


def _leave_cycles(footprint: TouchedState, parents: Mapping[UUID, UUID | None], plan: UndoPlan) -> None:
    """Keep the present parent of a lineage that would otherwise become its own ancestor."""
    standing = {t.id: t.parent_id for t in footprint.touched}
    above = {**parents, **{restored.id: restored.fields.parent_id for restored in plan.restored}}
    sound: set[UUID] = set()
    met: set[UUID] = set()
    circles: dict[UUID, Sequence[UUID]] = {}
    for restored in plan.restored:
        if restored.id not in met:
            met.update(_walk_up(restored.id, above, sound, circles, met))
    for place, restored in enumerate(plan.restored):
        if restored.id in circles:
            for member in circles[restored.id]:
                del circles[member]
            above[restored.id] = standing[restored.id]
            _walk_up(restored.id, above, sound, circles)
            fields = replace(restored.fields, parent_id=standing[restored.id])
            plan.restored[place] = replace(restored, fields=fields)
            plan.skipped.append(Skipped(restored.id, Reason.CYCLE))


def _walk_up(
    node_id: UUID,
    above: Mapping[UUID, UUID | None],
    sound: set[UUID],
    circles: dict[UUID, Sequence[UUID]],
    met: Collection[UUID] = (),
) -> Collection[UUID]:
    """Walk from a node to its ancestors, up to the first that was met before; return the nodes on the way.

    If the way ends at a root or at a sound node, its nodes are added to `sound`. If it runs into itself, the nodes of
    the circle are added to `circles`, each with all of them. No node in either is walked again: all walks together take
    as many steps as there are nodes.
    """
    walked: dict[UUID, None] = {}
    at: UUID | None = node_id
    while at is not None and at not in walked and at not in sound and at not in circles and at not in met:
        walked[at] = None
        at = above.get(at)
    if at in walked:
        way = list(walked)
        circle = way[way.index(at) :]
        circles.update(dict.fromkeys(circle, circle))
    elif at is None or at in sound:
        sound.update(walked)
    return walked


def _plan_observations(
    footprint: TouchedState, living: Collection[UUID], plan: UndoPlan
) -> Generator[None, None, None]:
    changed_later = [s for s in footprint.statements if s.changed_later and not s.lives and not s.expired]
    plan.skipped.extend(Skipped(i, Reason.CHANGED_LATER) for i in unique(s.observation.id for s in changed_later))
    ours = [s for s in footprint.statements if not s.changed_later]
    added, gone = yield from _without_pairs(ours)
    doomed, silent = set(plan.deleted), {r.id for r in plan.restored if r.fields.placeholder}
    plan.removed_observations.extend(s.observation.id for s in added if s.lives and s.observation.node_id not in doomed)
    for statement in gone:
        node_id = statement.observation.node_id
        if statement.expired:
            continue
        if node_id in living and node_id not in silent:
            plan.restored_observations.append(statement.observation)
        else:
            plan.skipped.append(Skipped(statement.observation.id, Reason.GONE))


def _plan_relations(footprint: TouchedState, living: Collection[UUID], plan: UndoPlan) -> None:
    leaving: list[RelationVersion] = []
    coming: list[RelationVersion] = []
    for _, versions in groupby(footprint.relations, key=lambda version: version.edge.id):
        _plan_relation(list(versions), leaving, coming, plan)
    again = {_relation_key(version.edge) for version in leaving} & {_relation_key(version.edge) for version in coming}
    coming = [version for version in coming if _relation_key(version.edge) not in again]
    plan.removed_relations.extend(version.edge.id for version in leaving if _relation_key(version.edge) not in again)
    for version in coming:
        if version.edge.from_node in living and version.edge.to_node in living:
            plan.restored_relations.append(version.edge)
        else:
            plan.skipped.append(Skipped(version.edge.id, Reason.GONE))


def _plan_relation(
    versions: Sequence[RelationVersion], leaving: list[RelationVersion], coming: list[RelationVersion], plan: UndoPlan
) -> None:
    """Plan one relation that the changes touched, from all its versions, the newest last."""
    newest = versions[-1]
    before = next((version for version in reversed(versions) if not version.added and version.removed), None)
    if newest.removed:
        coming.extend([before] if before else [])
    elif newest.lives and not newest.added:
        plan.skipped.append(Skipped(newest.edge.id, Reason.CHANGED_LATER))
    elif newest.lives and before is None:
        leaving.append(newest)
    elif newest.lives and before is not None and _relation_key(before.edge) != _relation_key(newest.edge):
        plan.rewritten_relations.append(before.edge)


def _plan_aliases(footprint: TouchedState, living: Collection[UUID], plan: UndoPlan) -> None:
    added = {(alias.node_id, alias.name): alias for alias in footprint.aliases if alias.added}
    gone = {(alias.node_id, alias.name): alias for alias in footprint.aliases if not alias.added}
    plan.removed_aliases.extend(alias for key, alias in added.items() if alias.node_id in living and key not in gone)
    plan.restored_aliases.extend(alias for key, alias in gone.items() if alias.node_id in living and key not in added)


def _without_pairs(
    found: Sequence[ObservationVersion],
) -> Generator[None, None, tuple[list[ObservationVersion], list[ObservationVersion]]]:
    """What the changes added and what they removed, without pairs: what was removed and added again unchanged.

    What a merge took from an entity and attached to it again has another id since: it is no pair, and gets its id back.
    """
    keyed: list[tuple[object, ObservationVersion]] = []
    for place, one in enumerate(found):
        if place % SLICE == 0:
            yield
        keyed.append((_observation_key(one.observation), one))
    gone = {key: one for key, one in keyed if not one.added}
    yield
    added = [(key, one) for key, one in keyed if one.added]
    again = {key for key, one in added if one.lives} & gone.keys()
    yield
    return [one for key, one in added if key not in again], [one for key, one in gone.items() if key not in again]


def _observation_key(observation: Observation) -> object:
    written = observation.id, observation.created_by, observation.said_at, observation.expires_at
    said = *observation.key, observation.status, observation.reason
    attributes = observation.kind, observation.tags, observation.importance, observation.source
    return *written, *said, *attributes, repr(sorted(observation.metadata.items()))


def _relation_key(edge: Edge) -> object:
    made = edge.created_at, edge.created_by
    return edge.from_node, edge.to_node, edge.type, repr(sorted(edge.metadata.items())), edge.ordinal, *made


def _restored(touched: TouchedNode, before: NodeBefore, siblings: Sequence[Sibling]) -> RestoredNode:
    lived = fields_of(touched) if touched.lives else None
    stood = tuple(sibling.id for sibling in siblings if sibling.stood)
    return RestoredNode(
        touched.id, fields_of(before), before.began_at, lived, stood, before.based_on if stood else None
    )
