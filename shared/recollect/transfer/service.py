"""Use cases of import: a batch of items. Exports are in `exports.py`."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from recollect.errors import InvalidInput
from recollect.graphs import service as graphs
from recollect.graphs.model import Graph, Revision
from recollect.platform.db import Transaction
from recollect.transfer.edges import import_relations
from recollect.transfer.entities import import_entities, import_placements
from recollect.transfer.facts import import_facts
from recollect.transfer.formats.reading import Item
from recollect.transfer.model import Imported, Problem, Strategy
from recollect.transfer.records import AnyRecord, EntityRecord, FactRecord, Placement, RelationRecord


async def import_batch(tx: Transaction, graph_name: str, items: Sequence[Item], strategy: Strategy) -> Imported:
    """Write items in one revision: one step of an import. Items that cannot be kept are passed over and told.

    Raises Forbidden, and Conflict under FAIL.
    """
    if not items:  # a graph is made by the first item that is kept
        await graphs.open_graph(tx, graph_name)
        return Imported()
    async with graphs.write_graph(tx, graph_name, "import") as revision:
        return await import_items(tx, revision, items, strategy)


async def import_items(tx: Transaction, revision: Revision, items: Sequence[Item], strategy: Strategy) -> Imported:
    """Write items in a revision: entities, facts, relations, and places in the hierarchy, whatever their order.

    What has expired since it was exported is skipped.
    """
    admitted, problems = _admitted(revision.graph, items)
    lasting = [item for item in admitted if not _is_over(item, revision.at)]
    over = _by_type([item for item in admitted if _is_over(item, revision.at)])
    parts = _by_type(lasting)
    imported, left = await import_entities(tx, revision, parts[EntityRecord], strategy)
    imported += Imported(entities_skipped=len(over[EntityRecord]), facts_skipped=len(over[FactRecord]))
    imported += await import_facts(tx, revision, parts[FactRecord], strategy)
    imported += await import_relations(tx, revision, parts[RelationRecord], strategy)
    if parts[Placement]:
        imported += await import_placements(tx, revision, parts[Placement], strategy, left=left)
    return replace(imported, problems=(*problems, *imported.problems))


def require_sound(problems: Sequence[Problem], *, field: str | None = None) -> None:
    """Raise InvalidInput where there are problems: the first, in the `field` that holds the file, and how many."""
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        path = f"{field}.{problems[0].where}" if field else problems[0].where
        raise InvalidInput(f"{problems[0].reason}{more}. Nothing was imported", path=path)


_TYPES = (EntityRecord, FactRecord, RelationRecord, Placement)

_LEAST = timedelta(minutes=1)
"""What is to last no longer is not begun: it would be gone before all that belongs to it is there."""


def _is_over(item: Item, now: datetime) -> bool:
    record = item.record
    if not isinstance(record, EntityRecord | FactRecord) or record.expires_at is None:
        return False
    return record.expires_at <= now + _LEAST


def _by_type(items: Sequence[Item]) -> dict[type[AnyRecord], list[Item]]:
    return {type_: [item for item in items if isinstance(item.record, type_)] for type_ in _TYPES}


def _admitted(graph: Graph, items: Sequence[Item]) -> tuple[list[Item], list[Problem]]:
    """The items but those whose kind the graph's whitelist leaves out."""
    admitted, problems = [], []
    for item in items:
        try:
            match item.record:
                case EntityRecord(entity_type=kind):
                    graph.require_kind(kind or None, "entityType")
                case FactRecord(kind=kind):
                    graph.require_kind(kind or None, "kind")
            admitted.append(item)
        except InvalidInput as error:
            problems.append(Problem(item.where, error.message))
    return admitted, problems
