"""Import relations between names and facts. A name that no node has gets a placeholder."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.graph.graphs.model import Revision
from recollect.graph.json_values import same_json
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import unique
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import Edge, NewEdge
from recollect.postgres.transactions import Transaction
from recollect.transfer import store
from recollect.transfer.expired import refers_to_expired
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.model import ImportProblem, ImportResult, Strategy
from recollect.transfer.records import End, FactKey, RelationRecord

NO_SUCH_FACT = "no fact says this"


async def import_relations(
    tx: Transaction, revision: Revision, items: Sequence[ParsedRecord], strategy: Strategy
) -> ImportResult:
    """Write the relations among some items; return the counts and problems.

    A relation of a fact that has expired since the export is skipped.
    """
    records = [(item, item.record) for item in items if isinstance(item.record, RelationRecord)]
    if not records:
        return ImportResult()
    ends = unique(end for _, record in records for end in (record.from_, record.to))
    facts = [end for end in ends if isinstance(end, FactKey)]
    ids_by_fact = await store.find_facts(tx, revision.graph, facts) if facts else {}
    found: dict[End, UUID] = dict(ids_by_fact.items())
    missing = {end for end in facts if end not in found}
    sound = [record for _, record in records if not {record.from_, record.to} & missing]
    dangling = [item for item, record in records if {record.from_, record.to} & missing]
    broken = [item for item in dangling if not refers_to_expired(item.until, revision.at)]
    problems = [ImportProblem(item.where, NO_SUCH_FACT) for item in broken]
    names = unique(end for record in sound for end in (record.from_, record.to) if isinstance(end, str))
    named = await nodes.ensure_named(tx, revision, names, exactly=True) if names else {}
    found |= {name: node.id for name, node in named.items()}
    new_edges = [_edge(record, found) for record in sound]
    created = updated = 0
    if strategy in (Strategy.MERGE, Strategy.REPLACE):
        for page in await relations.pages_of(tx, new_edges):
            counts = await _put(tx, revision, page, strategy)
            created, updated = created + counts[0], updated + counts[1]
    else:  # What is stored stays as it is, and is not read.
        created = len(await relations.add_edges(tx, revision, new_edges))
    return ImportResult(
        relations_created=created,
        relations_updated=updated,
        relations_skipped=len(records) - len(broken) - created - updated,
        problems=tuple(problems),
    )


async def _put(
    tx: Transaction, revision: Revision, new_edges: Sequence[NewEdge], strategy: Strategy
) -> tuple[int, int]:
    """Create edges, and change existing ones as the strategy says; return how many were created, and changed."""
    ids_before = set(revision.ids)
    stored = await relations.put_edges(tx, revision, new_edges)
    created = {edge.id for edge in stored}.intersection(revision.ids) - ids_before
    existing = {edge.id: (edge, new) for edge, new in zip(stored, new_edges, strict=True) if edge.id not in created}
    changed = [
        (edge, replacement)
        for edge, new in existing.values()
        if _differs(edge, replacement := _replacement(edge, new, strategy))
    ]
    await relations.rewrite_edges(tx, revision, changed)
    return len(created), len(changed)


def _edge(record: RelationRecord, ends: Mapping[End, UUID]) -> NewEdge:
    return NewEdge(
        ends[record.from_],
        ends[record.to],
        record.relation_type,
        metadata=record.metadata,
        ordinal=record.ordinal,
        created_at=record.created_at,
    )


def _replacement(edge: Edge, new: NewEdge, strategy: Strategy) -> NewEdge:
    """The edge that replaces an existing one under REPLACE; else, what completes that one."""
    attributed = replace(new, actor=edge.created_by, created_at=edge.created_at)
    if strategy is Strategy.REPLACE:
        return attributed
    ordinal = new.ordinal if edge.ordinal is None else edge.ordinal
    return replace(attributed, metadata={**(new.metadata or {}), **edge.metadata}, ordinal=ordinal)


def _differs(edge: Edge, new: NewEdge) -> bool:
    return edge.ordinal != new.ordinal or not same_json(edge.metadata, new.metadata)
