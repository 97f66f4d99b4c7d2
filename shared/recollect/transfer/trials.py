"""An import that is tried batch by batch, none of which is kept: what of a batch hangs on those before it.

Each batch is written as it will be and rolled back. What earlier ones hold that it means (a name that comes again, a
parent, a fact at an end of a relation) is written before it, as far as it takes to be there.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from recollect.errors import Conflict, ErrorCode, TooLarge
from recollect.graphs import service as graphs
from recollect.graphs.model import Revision
from recollect.nodes import service as nodes
from recollect.platform.db import Transaction
from recollect.transfer import service, store
from recollect.transfer.formats.reading import Item
from recollect.transfer.model import Imported, Problem, Strategy
from recollect.transfer.records import EntityRecord, FactEnd, FactRecord, Placement, RelationRecord

MAX_NOTED = 1_000_000
"""Entities, facts and relations of a file that is tried, at most: they are noted (about 70 bytes each)."""

MAX_ADDED = 100_000
"""What others may write while a file is tried, at most, in entities and facts."""

MEANWHILE = "somebody else made it while this was imported"


@dataclass(slots=True)
class Noted:
    """What a file holds so far, as hashes."""

    keys: set[int] = field(default_factory=set)

    def note(self, items: Sequence[Item]) -> None:
        """Add what these items make; raises TooLarge past MAX_NOTED."""
        self.keys.update(key for item in items if (key := _key(item.record)) is not None)
        if len(self.keys) > MAX_NOTED:
            raise TooLarge(f"A file that is tried first holds at most {MAX_NOTED} entities, facts and relations")

    def needed(self, items: Sequence[Item]) -> list[Item]:
        """What was noted before and these items mean, as records that make it be there."""
        return [Item(item.where, one) for item in items for one in _meant(item.record) if _key(one) in self.keys]


async def try_items(
    tx: Transaction, graph_id: UUID, items: Sequence[Item], strategy: Strategy, noted: Noted
) -> Imported:
    """What a batch would come to after those that were noted; nothing is written.

    Raises NotFound, Forbidden, and Conflict under FAIL.
    """
    async with tx.trial():
        needed = noted.needed(items)
        async with graphs.write_graph_of(tx, graph_id, "import") as revision:
            if needed:
                await service.import_items(tx, revision, _allowed(needed, revision), Strategy.SKIP)
        async with graphs.write_graph_of(tx, graph_id, "import") as revision:
            return await service.import_items(tx, revision, items, strategy)


async def require_none_added(tx: Transaction, revision: Revision, since: datetime, noted: Noted) -> None:
    """Raise Conflict where somebody made, after a time, an entity or a fact that was noted."""
    added = await store.added_since(tx, revision.graph, since, limit=MAX_ADDED)
    if len(added) == MAX_ADDED:
        raise Conflict("The graph changes too much to be sure of it.", code=ErrorCode.VERSION_CONFLICT)
    if any(_key(one) in noted.keys for one in added):
        raise Conflict("There is an entity or a fact of the file already.", code=ErrorCode.NAME_TAKEN)


async def made_meanwhile(tx: Transaction, revision: Revision, items: Sequence[Item]) -> list[Problem]:
    """Which entities and facts are there, though none was when the import began to be written."""
    names = [item.record.name for item in items if isinstance(item.record, EntityRecord)]
    ends = [item.record.end for item in items if isinstance(item.record, FactRecord)]
    found = await nodes.find_named(tx, revision.graph, names) if names else {}
    facts = await store.find_facts(tx, revision.graph, ends) if ends else {}
    there = {_key(_named(name)) for name, node in found.items() if not node.placeholder}
    there |= {_key(FactRecord(text=end.text, thread=end.thread, status=end.status)) for end in facts}
    return [
        Problem(item.where, MEANWHILE)
        for item in items
        if isinstance(item.record, EntityRecord | FactRecord) and _key(item.record) in there
    ]


def _allowed(items: Sequence[Item], revision: Revision) -> list[Item]:
    """The items with a type that the graph allows: it is of no account what those are that only have to be there."""
    kind = next(iter(revision.graph.kind_whitelist or ()), "")
    types = {EntityRecord: {"entity_type": kind}, FactRecord: {"kind": kind}}
    return [
        Item(item.where, msgspec.structs.replace(item.record, **types.get(type(item.record), {}))) for item in items
    ]


def _key(record: Any) -> int | None:
    match record:
        case EntityRecord():
            return hash(("entity", record.name))
        case FactRecord():
            return hash(("fact", record.text, record.thread, record.status))
        case RelationRecord():
            return hash(("relation", record.from_, record.to, record.relation_type))
    return None


def _meant(record: Any) -> Iterator[EntityRecord | FactRecord | RelationRecord]:
    match record:
        case EntityRecord():
            yield _named(record.name)
            yield from _all_named([record.parent_id])
        case Placement():
            yield from _all_named([record.name, record.parent_id])
        case FactRecord():
            yield record
        case RelationRecord():
            for end in (record.from_, record.to):
                if isinstance(end, FactEnd):
                    yield FactRecord(text=end.text, thread=end.thread, status=end.status)
            yield record


def _all_named(names: Iterable[str | None]) -> Iterator[EntityRecord]:
    for name in names:
        if name is not None:
            yield _named(name)


def _named(name: str) -> EntityRecord:
    return EntityRecord(name=name, entity_type="", observations=[])
