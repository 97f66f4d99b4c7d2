"""Plan how to undo changes: pure functions of the rows that the revisions wrote.

Lineages, observations, relations and aliases are undone one by one. A lineage gets, by a new version, the state that it
had before the first undone version; if it had several heads then, it gets all of them back. Additions are removed.
Removals are restored (relations under new ids). A changed observation is both: one version is removed and one is
restored. Whatever another actor changed later stays as it is, and the plan lists it as skipped.
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
from recollect.graph.nodes.model import NodeFields, RestoredNode, name_key, unique
from recollect.graph.observations.model import Observation
from recollect.graph.relations.model import Edge

SLICE = 100
"""Lineages that are planned before other calls have their turn; one with metadata, which may take milliseconds to
compare, is planned alone."""


def plan_undo(graph: Graph, state: TouchedState, context: UndoContext) -> Generator[None, None, UndoPlan]:
    """A computation: what the undo does, and what it skips. Its time is linear in the number of changes."""
    plan = UndoPlan()
    known = {t.id for t in state.touched} | {s.observation.id for s in state.statements}
    known |= {version.edge.id for version in state.relations}
    plan.skipped.extend(Skipped(i, Reason.COMPACTED) for i in sorted(state.ids - known))
    for index, touched in enumerate(state.touched):
        if index % SLICE == 0 or touched.metadata:
            yield
        _plan_node(graph, touched, state.before.get(touched.id), state.siblings.get(touched.id, ()), plan)
    _skip_taken_names(state, context, plan)
    yield
    _skip_cycles(state, context.parents, plan)
    yield
    living = set(context.living) - set(plan.deleted) | {restored.id for restored in plan.restored}
    yield from _plan_observations(state, living, plan)
    yield
    yield from _plan_relations(state, living, plan)
    yield
    _plan_aliases(state, living, plan)
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
        return  # It has expired: no read returns it now, nor would one after the undo.
    reason = _reason_to_skip(graph, touched, before, siblings)
    if reason is not None:
        plan.skipped.append(Skipped(touched.id, reason))
    elif before is None or before.deleted:
        if touched.lives and not touched.placeholder:
            plan.deleted.append(touched.id)
    elif not _is_unchanged(touched, before, siblings):
        plan.restored.append(_restored_node(touched, before, siblings))


def _is_unchanged(touched: TouchedNode, before: NodeBefore, siblings: Sequence[Sibling]) -> bool:
    """Whether a lineage is now as it was before the changes, its sibling heads included."""
    siblings_before = [fields_of(sibling) for sibling in siblings if sibling.stood]
    siblings_now = [fields_of(sibling) for sibling in siblings if sibling.stands]
    same_head = fields_of(before).is_same_as(fields_of(touched)) and before.began_at == touched.created_at
    same_siblings = len(siblings_before) == len(siblings_now) and all(
        map(NodeFields.is_same_as, siblings_before, siblings_now)
    )
    return touched.lives and same_head and same_siblings


def _reason_to_skip(
    graph: Graph, touched: TouchedNode, before: NodeBefore | None, siblings: Sequence[Sibling]
) -> Reason | None:
    """Why a lineage must stay as it is; None: it can be undone."""
    if touched.changed_later:
        return Reason.CHANGED_LATER
    if touched.existed and before is None:
        return Reason.COMPACTED
    is_new = before is None or before.deleted
    if is_new and touched.lives and not touched.placeholder and (touched.observed or touched.related or touched.above):
        return Reason.CHANGED_LATER
    if before is None or before.deleted:
        return None
    if before.placeholder and not touched.placeholder and (touched.observed or touched.above):
        return Reason.CHANGED_LATER
    return None if _are_kinds_allowed(graph, touched, before, siblings) else Reason.KIND_NOT_ALLOWED


def _are_kinds_allowed(graph: Graph, touched: TouchedNode, before: NodeBefore, siblings: Sequence[Sibling]) -> bool:
    """Whether the whitelist allows the kinds that a lineage had. The kind that it has now is allowed in any case."""
    if graph.kind_whitelist is None or before.placeholder:
        return True
    present_kinds = {touched.kind} if touched.lives else set()
    kinds = {before.kind, *(sibling.kind for sibling in siblings if sibling.stood)}
    return kinds <= present_kinds.union(graph.kind_whitelist)


def _skip_taken_names(state: TouchedState, context: UndoContext, plan: UndoPlan) -> None:
    """Skip each lineage whose old name another node has, or another restored lineage gets, in whichever form.

    A skipped lineage keeps its present name. If that is the old name of another lineage, this one is skipped, too.
    """
    present_names = {t.id: t.name for t in state.touched if t.lives and t.name}
    restored_ids = {restored.id for restored in plan.restored}
    changing = restored_ids | set(plan.deleted)
    name_owners = {name: owner for name, owner in context.owners.items() if owner not in changing}
    newly_skipped = _second_forms(name_owners, context.former_names, plan.restored)
    newly_skipped |= {
        restored.id
        for restored in plan.restored
        if (name := restored.fields.name) is not None and name_owners.setdefault(name, restored.id) != restored.id
    }
    skipped: set[UUID] = set()
    while newly_skipped:
        skipped |= newly_skipped
        plan.skipped.extend(Skipped(i, Reason.NAME_TAKEN) for i in sorted(newly_skipped))
        retained = {present_names[i]: i for i in newly_skipped if i in present_names}
        newly_skipped = {name_owners[name] for name in retained if name_owners.get(name) in restored_ids} - skipped
        name_owners |= retained
    if skipped:
        plan.restored[:] = [restored for restored in plan.restored if restored.id not in skipped]


def _second_forms(
    owners: Mapping[str, UUID], former_names: Mapping[UUID, str], restored: Sequence[RestoredNode]
) -> set[UUID]:
    """Restored lineages that would make a second form of a name which was not there when the undone changes began.

    Forms that existed side by side then (`former_names`), as an import of old may have made them, do so again.
    """
    lineages = [(r.id, name_key(r.fields.name)) for r in restored if r.fields.name is not None]
    is_former = {i: name_key(former_names[i]) == key for i, key in lineages if i in former_names}
    owned: dict[str, bool] = {}
    for name, owner in owners.items():
        key = name_key(name)
        owned[key] = owned.get(key, True) and name_key(former_names.get(owner, "")) == key
    duplicated = set(owned) | {key for i, key in lineages if is_former.get(i)}
    skipped = {i for i, key in lineages if not owned.get(key, True) or (key in duplicated and not is_former.get(i))}
    firsts: dict[str, UUID] = {}
    return skipped | {i for i, key in lineages if key not in duplicated and firsts.setdefault(key, i) != i}


def _skip_cycles(state: TouchedState, parents: Mapping[UUID, UUID | None], plan: UndoPlan) -> None:
    """Keep the present parent of a lineage that would otherwise become its own ancestor."""
    present_parents = {t.id: t.parent_id for t in state.touched}
    new_parents = {**parents, **{restored.id: restored.fields.parent_id for restored in plan.restored}}
    rooted: set[UUID] = set()
    visited: set[UUID] = set()
    cycles: dict[UUID, Sequence[UUID]] = {}
    for restored in plan.restored:
        if restored.id not in visited:
            visited.update(_walk_up(restored.id, new_parents, rooted, cycles, visited))
    for index, restored in enumerate(plan.restored):
        if restored.id in cycles:
            for member in cycles[restored.id]:
                del cycles[member]
            new_parents[restored.id] = present_parents[restored.id]
            _walk_up(restored.id, new_parents, rooted, cycles)
            fields = replace(restored.fields, parent_id=present_parents[restored.id])
            plan.restored[index] = replace(restored, fields=fields)
            plan.skipped.append(Skipped(restored.id, Reason.CYCLE))


def _walk_up(
    node_id: UUID,
    parents: Mapping[UUID, UUID | None],
    rooted: set[UUID],
    cycles: dict[UUID, Sequence[UUID]],
    visited: Collection[UUID] = (),
) -> Collection[UUID]:
    """Walk from a node to its ancestors, up to the first that was visited before; return the nodes of the walk.

    If the walk ends at a root or at a rooted node, its nodes are added to `rooted`. If it runs into itself, the nodes
    of the cycle are added to `cycles`, each with all of them. No node in either is visited again: all walks together
    take as many steps as there are nodes.
    """
    path: dict[UUID, None] = {}
    current: UUID | None = node_id
    while (
        current is not None
        and current not in path
        and current not in rooted
        and current not in cycles
        and current not in visited
    ):
        path[current] = None
        current = parents.get(current)
    if current in path:
        nodes = list(path)
        cycle = nodes[nodes.index(current) :]
        cycles.update(dict.fromkeys(cycle, cycle))
    elif current is None or current in rooted:
        rooted.update(path)
    return path


def _plan_observations(state: TouchedState, living: Collection[UUID], plan: UndoPlan) -> Generator[None, None, None]:
    changed_later = [s for s in state.statements if s.changed_later and not s.lives and not s.expired]
    plan.skipped.extend(Skipped(i, Reason.CHANGED_LATER) for i in unique(s.observation.id for s in changed_later))
    added, removed = yield from _without_pairs([s for s in state.statements if not s.changed_later])
    deleted_nodes, placeholders = set(plan.deleted), {r.id for r in plan.restored if r.fields.placeholder}
    plan.removed_observations.extend(
        s.observation.id for s in added if s.lives and s.observation.node_id not in deleted_nodes
    )
    for statement in removed:
        node_id = statement.observation.node_id
        if statement.expired:
            continue
        if node_id in living and node_id not in placeholders:
            plan.restored_observations.append(statement.observation)
        else:
            plan.skipped.append(Skipped(statement.observation.id, Reason.GONE))


def _plan_relations(state: TouchedState, living: Collection[UUID], plan: UndoPlan) -> Generator[None, None, None]:
    to_remove: list[RelationVersion] = []
    to_restore: list[RelationVersion] = []
    for index, (_, versions) in enumerate(groupby(state.relations, key=lambda version: version.edge.id)):
        of_one = list(versions)
        if index % SLICE == 0 or any(version.edge.metadata for version in of_one):
            yield
        _plan_relation(of_one, to_remove, to_restore, plan)
    # A relation that would be removed and restored unchanged stays as it is.
    removed = yield from _by_relation_key(to_remove)
    restored = yield from _by_relation_key(to_restore)
    unchanged = {key for key, _ in removed} & {key for key, _ in restored}
    plan.removed_relations.extend(version.edge.id for key, version in removed if key not in unchanged)
    yield
    for key, version in restored:
        if key in unchanged:
            continue
        if version.edge.from_node in living and version.edge.to_node in living:
            plan.restored_relations.append(version.edge)
        else:
            plan.skipped.append(Skipped(version.edge.id, Reason.GONE))


def _by_relation_key(
    versions: Sequence[RelationVersion],
) -> Generator[None, None, list[tuple[object, RelationVersion]]]:
    keyed: list[tuple[object, RelationVersion]] = []
    for index, version in enumerate(versions):
        if index % SLICE == 0 or version.edge.metadata:
            yield
        keyed.append((_relation_key(version.edge), version))
    return keyed


def _plan_relation(
    versions: Sequence[RelationVersion],
    to_remove: list[RelationVersion],
    to_restore: list[RelationVersion],
    plan: UndoPlan,
) -> None:
    """Plan one relation that the changes touched, from all its versions, the newest last."""
    newest = versions[-1]
    before = next((version for version in reversed(versions) if not version.added and version.removed), None)
    if newest.removed:
        to_restore.extend([before] if before else [])
    elif newest.lives and not newest.added:
        plan.skipped.append(Skipped(newest.edge.id, Reason.CHANGED_LATER))
    elif newest.lives and before is None:
        to_remove.append(newest)
    elif newest.lives and before is not None and _relation_key(before.edge) != _relation_key(newest.edge):
        plan.rewritten_relations.append(before.edge)


def _plan_aliases(state: TouchedState, living: Collection[UUID], plan: UndoPlan) -> None:
    added = {(alias.node_id, alias.name): alias for alias in state.aliases if alias.added}
    removed = {(alias.node_id, alias.name): alias for alias in state.aliases if not alias.added}
    plan.removed_aliases.extend(alias for key, alias in added.items() if alias.node_id in living and key not in removed)
    plan.restored_aliases.extend(
        alias for key, alias in removed.items() if alias.node_id in living and key not in added
    )


def _without_pairs(
    versions: Sequence[ObservationVersion],
) -> Generator[None, None, tuple[list[ObservationVersion], list[ObservationVersion]]]:
    """The versions that the changes added, and those that they removed, without those removed and added unchanged.

    An observation that a merge took from an entity and attached to it again has another id since: it is no such pair,
    and gets its id back.
    """
    keyed: list[tuple[object, ObservationVersion]] = []
    for index, version in enumerate(versions):
        if index % SLICE == 0 or version.observation.metadata:
            yield
        keyed.append((_observation_key(version.observation), version))
    removed = {key: version for key, version in keyed if not version.added}
    yield
    added = [(key, version) for key, version in keyed if version.added]
    paired = {key for key, version in added if version.lives} & removed.keys()
    yield
    return (
        [version for key, version in added if key not in paired],
        [version for key, version in removed.items() if key not in paired],
    )


def _observation_key(observation: Observation) -> object:
    """All fields of an observation, in a hashable form."""
    origin = (
        observation.id,
        observation.created_by,
        observation.said_at,
        observation.said_offset,
        observation.expires_at,
    )
    statement = *observation.key, observation.status, observation.reason
    attributes = observation.kind, observation.tags, observation.importance, observation.source
    return *origin, *statement, *attributes, repr(sorted(observation.metadata.items()))


def _relation_key(edge: Edge) -> object:
    """The fields of a relation that an undo restores, in a hashable form."""
    created = edge.created_at, edge.created_by
    return edge.from_node, edge.to_node, edge.type, repr(sorted(edge.metadata.items())), edge.ordinal, *created


def _restored_node(touched: TouchedNode, before: NodeBefore, siblings: Sequence[Sibling]) -> RestoredNode:
    present = fields_of(touched) if touched.lives else None
    sibling_ids = tuple(sibling.id for sibling in siblings if sibling.stood)
    return RestoredNode(
        touched.id,
        fields_of(before),
        before.began_at,
        present,
        sibling_ids,
        before.based_on if sibling_ids else None,
    )
