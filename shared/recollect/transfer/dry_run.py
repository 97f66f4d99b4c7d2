"""Try an import batch by batch without keeping anything, and provide what a batch needs of earlier ones.

Each batch is written as the import would write it, and rolled back. Items of earlier batches to which it refers (a
repeated name, a parent, a fact at an end of a relation) are written before it, in the smallest form that makes them
exist.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import compress
from typing import Any
from uuid import UUID, uuid4

import msgspec

from recollect.errors import Conflict, ErrorCode, TooLarge
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph, Revision
from recollect.graph.nodes import naming
from recollect.postgres.transactions import Transaction
from recollect.transfer import service, store
from recollect.transfer.expired import is_expired
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.model import ImportProblem, ImportResult, Strategy
from recollect.transfer.records import EntityRecord, FactKey, FactRecord, Placement, RelationRecord

MAX_SEEN = 1_000_000
"""Most entities, facts and relations of a file in a dry run: each is noted (about 70 bytes)."""

MAX_ADDED = 100_000
"""Most entities and facts that others may write during a dry run."""

CONFLICT_REASON = "somebody else created it during the import"


@dataclass(slots=True)
class SeenRecords:
    """Hashes of the records read so far."""

    keys: set[int] = field(default_factory=set)

    def note(self, items: Sequence[ParsedRecord]) -> None:
        """Add these items, without those that have expired and are skipped. Raises TooLarge for more than MAX_SEEN."""
        now = datetime.now(UTC)
        lasting = (item.record for item in items if not is_expired(item.record, now))
        self.keys.update(key for record in lasting if (key := _key(record)) is not None)
        if len(self.keys) > MAX_SEEN:
            raise TooLarge(f"A dry run can read a file of at most {MAX_SEEN} entities, facts and relations")

    def needed(self, items: Sequence[ParsedRecord]) -> list[ParsedRecord]:
        """Records that create the noted entities, facts and relations to which these items refer."""
        return [
            ParsedRecord(item.where, record)
            for item in items
            for record in _referenced(item.record)
            if _key(record) in self.keys
        ]


async def dry_run_items(
    tx: Transaction, graph_id: UUID | None, items: Sequence[ParsedRecord], strategy: Strategy, seen: SeenRecords
) -> ImportResult:
    """The result of importing a batch after the noted ones. Nothing is stored. `graph_id` None: in an empty graph.

    Raises NotFound, Forbidden, and Conflict under FAIL.
    """
    async with tx.dry_run():
        if graph_id is None:
            graph_id = (await graphs.create_graph(tx, NewGraph(f"trial-{uuid4().hex}"))).id
        needed = seen.needed(items)
        async with graphs.write_graph_of(tx, graph_id, "import") as revision:
            begun = revision.number
            if needed:
                await service.import_items(tx, revision, _allowed(needed, revision), Strategy.SKIP)
        async with graphs.write_graph_of(tx, graph_id, "import") as revision:
            return await service.import_items(tx, revision, items, strategy, begun=begun)


async def require_none_added(tx: Transaction, revision: Revision, since: datetime, seen: SeenRecords) -> None:
    """Raise Conflict if another caller created a noted entity or fact after a time."""
    added = await store.added_since(tx, revision.graph, since, limit=MAX_ADDED)
    if len(added) == MAX_ADDED:
        raise Conflict(
            "Too much was written to the graph during the import. Try again.",
            code=ErrorCode.VERSION_CONFLICT,
        )
    if any(_key(record) in seen.keys for record in added):
        raise Conflict(
            "Somebody created an entity or a fact of the file during the import. Try again.", code=ErrorCode.NAME_TAKEN
        )


async def without_concurrent_writes(
    tx: Transaction, revision: Revision, items: Sequence[ParsedRecord]
) -> tuple[list[ParsedRecord], list[ImportProblem]]:
    """The items without entities and facts that others created since the import began to write; these as problems."""
    names = [item.record.name for item in items if isinstance(item.record, EntityRecord)]
    ends = [item.record.end for item in items if isinstance(item.record, FactRecord)]
    found = await naming.find_named_exactly(tx, revision.graph, names)
    facts = await store.find_facts(tx, revision.graph, ends) if ends else {}
    existing = {_key(_named(name)) for name, node in found.items() if not node.placeholder}
    existing |= {_key(FactRecord(text=end.text, thread=end.thread, status=end.status)) for end in facts}
    written = [  # A later part of an entity finds the first one, which this import has written or refused.
        isinstance(item.record, EntityRecord | FactRecord) and not item.continues and _key(item.record) in existing
        for item in items
    ]
    return (  # Items of one line have one position: each is judged by itself.
        [item for item, is_written in zip(items, written, strict=True) if not is_written],
        [ImportProblem(item.where, CONFLICT_REASON) for item in compress(items, written)],
    )


def _allowed(items: Sequence[ParsedRecord], revision: Revision) -> list[ParsedRecord]:
    """The items with a type that the graph allows. Their own types do not matter: they only have to exist."""
    kind = next(iter(revision.graph.kind_whitelist or ()), "")
    types = {EntityRecord: {"entity_type": kind}, FactRecord: {"kind": kind}}
    return [
        ParsedRecord(item.where, msgspec.structs.replace(item.record, **types.get(type(item.record), {})))
        for item in items
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


def _referenced(record: Any) -> Iterator[EntityRecord | FactRecord | RelationRecord]:
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
                if isinstance(end, FactKey):
                    yield FactRecord(text=end.text, thread=end.thread, status=end.status)
            yield record


def _all_named(names: Iterable[str | None]) -> Iterator[EntityRecord]:
    for name in names:
        if name is not None:
            yield _named(name)


def _named(name: str) -> EntityRecord:
    return EntityRecord(name=name, entity_type="", observations=[])
