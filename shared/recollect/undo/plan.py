"""What it takes to undo somebody's changes: pure planning on what the revisions tell.

The unit is the lineage, the observation, the relation and the alias. A lineage goes back to the version before the
first that is undone, by a new version; what was added leaves, what was taken away comes back (observations and
relations under new ids). What somebody else changed later stays as it is, and is told.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from recollect.graphs.model import Graph
from recollect.nodes.model import Restored
from recollect.observations.model import Observation
from recollect.relations.model import Edge
from recollect.undo.model import (
    Before,
    Footprint,
    Reason,
    Skipped,
    Statement,
    Surroundings,
    Tie,
    Touched,
    Undoing,
    fields_of,
)

T = TypeVar("T", Statement, Tie)


def plan_undo(graph: Graph, footprint: Footprint, around: Surroundings) -> Undoing:
    """What undoing the changes does, and what it leaves alone."""
    undoing = Undoing()
    known = {t.id for t in footprint.touched} | {s.observation.id for s in footprint.statements}
    known |= {tie.edge.id for tie in footprint.ties}
    undoing.skipped.extend(Skipped(i, Reason.COMPACTED) for i in sorted(footprint.ids - known))
    for touched in footprint.touched:
        _plan_node(graph, touched, footprint.before.get(touched.id), undoing)
    _leave_taken_names(footprint, around.owners, undoing)
    _leave_cycles(footprint, around.parents, undoing)
    living = set(around.living) - set(undoing.deleted) | {restored.id for restored in undoing.restored}
    _plan_statements(footprint, living, undoing)
    _plan_ties(footprint, living, undoing)
    _plan_aliases(footprint, living, undoing)
    return undoing


def _plan_node(graph: Graph, touched: Touched, before: Before | None, undoing: Undoing) -> None:
    if touched.placed and (before.deleted if before else not touched.existed):
        # A placeholder leaves with the last of its relations; those that others made keep it, and its name.
        if touched.lives and touched.placeholder and not touched.related:
            undoing.deleted.append(touched.id)
        return
    if before and before.expired and not before.deleted and (touched.expired or not touched.lives):
        return  # Nobody sees it, nor would.
    reason = _why_not(graph, touched, before)
    if reason is not None:
        undoing.skipped.append(Skipped(touched.id, reason))
    elif before is None or before.deleted:
        if touched.lives and not touched.placeholder:
            undoing.deleted.append(touched.id)
    elif not touched.lives or fields_of(before) != fields_of(touched) or before.began_at != touched.created_at:
        undoing.restored.append(_restored(touched, before))


def _why_not(graph: Graph, touched: Touched, before: Before | None) -> Reason | None:
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
    allowed = graph.kind_whitelist is None or before.placeholder or before.kind in graph.kind_whitelist
    keeps = touched.lives and before.kind == touched.kind
    return None if allowed or keeps else Reason.KIND_NOT_ALLOWED


def _leave_taken_names(footprint: Footprint, owners: Mapping[str, UUID], undoing: Undoing) -> None:
    """Leave lineages alone whose names others have now, until those that come back have names of their own."""
    touched = {t.id: t for t in footprint.touched}
    while True:
        coming = {restored.id for restored in undoing.restored}
        moved = coming | set(undoing.deleted)
        taken = {name: owner for name, owner in owners.items() if owner not in moved}
        refused = set()
        for restored in undoing.restored:
            name = restored.fields.name
            if name is not None and taken.setdefault(name, restored.id) != restored.id:
                refused.add(restored.id)
        if not refused:
            return
        undoing.skipped.extend(Skipped(i, Reason.NAME_TAKEN) for i in sorted(refused))
        undoing.restored[:] = [restored for restored in undoing.restored if restored.id not in refused]
        # They keep the names that they have, which others may have had before.
        owners = {**owners, **{str(touched[i].name): i for i in refused if touched[i].lives and touched[i].name}}


def _leave_cycles(footprint: Footprint, parents: Mapping[UUID, UUID | None], undoing: Undoing) -> None:
    """Leave a lineage where it stands now if it would come to stand below itself."""
    standing = {t.id: t.parent_id for t in footprint.touched}
    above = {**parents, **{restored.id: restored.fields.parent_id for restored in undoing.restored}}
    for place, restored in enumerate(undoing.restored):
        if _stands_below_itself(restored.id, above):
            above[restored.id] = standing[restored.id]
            fields = replace(restored.fields, parent_id=standing[restored.id])
            undoing.restored[place] = replace(restored, fields=fields)
            undoing.skipped.append(Skipped(restored.id, Reason.CYCLE))


def _stands_below_itself(node_id: UUID, above: Mapping[UUID, UUID | None]) -> bool:
    seen, parent = set[UUID](), above.get(node_id)
    while parent is not None and parent not in seen:
        if parent == node_id:
            return True
        seen.add(parent)
        parent = above.get(parent)
    return False


def _plan_statements(footprint: Footprint, living: Collection[UUID], undoing: Undoing) -> None:
    added, gone = _without_pairs(footprint.statements, lambda s: _statement_key(s.observation))
    doomed, silent = set(undoing.deleted), {r.id for r in undoing.restored if r.fields.placeholder}
    undoing.unsaid.extend(s.observation.id for s in added if s.lives and s.observation.node_id not in doomed)
    for statement in gone:
        node_id = statement.observation.node_id
        if statement.expired:
            continue
        if node_id in living and node_id not in silent:
            undoing.said.append(statement.observation)
        else:
            undoing.skipped.append(Skipped(statement.observation.id, Reason.GONE))


def _plan_ties(footprint: Footprint, living: Collection[UUID], undoing: Undoing) -> None:
    added, gone = _without_pairs(footprint.ties, lambda tie: _tie_key(tie.edge))
    undoing.unrelated.extend(tie.edge.id for tie in added if tie.lives)
    for tie in gone:
        if tie.edge.from_node in living and tie.edge.to_node in living:
            undoing.related.append(tie.edge)
        else:
            undoing.skipped.append(Skipped(tie.edge.id, Reason.GONE))


def _plan_aliases(footprint: Footprint, living: Collection[UUID], undoing: Undoing) -> None:
    added = {(alias.node_id, alias.name): alias for alias in footprint.aliases if alias.added}
    gone = {(alias.node_id, alias.name): alias for alias in footprint.aliases if not alias.added}
    undoing.unnamed.extend(alias for key, alias in added.items() if alias.node_id in living and key not in gone)
    undoing.named.extend(alias for key, alias in gone.items() if alias.node_id in living and key not in added)


def _without_pairs(found: Iterable[T], key: Callable[[T], object]) -> tuple[list[T], list[T]]:
    """What was added and what was taken away, without what was taken away and is there again just so."""
    found = list(found)
    gone = {key(one): one for one in found if not one.added}
    added = [one for one in found if one.added]
    again = {key(one) for one in added if one.lives} & gone.keys()
    return [one for one in added if key(one) not in again], [one for k, one in gone.items() if k not in again]


def _statement_key(observation: Observation) -> object:
    said = observation.node_id, observation.content, observation.thread
    return *said, observation.said_at, observation.expires_at


def _tie_key(edge: Edge) -> object:
    return edge.from_node, edge.to_node, edge.type, repr(sorted(edge.metadata.items())), edge.ordinal


def _restored(touched: Touched, before: Before) -> Restored:
    lived = fields_of(touched) if touched.lives else None
    return Restored(touched.id, fields_of(before), before.began_at, lived)
