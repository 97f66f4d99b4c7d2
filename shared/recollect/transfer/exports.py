"""Use cases of export: a graph as a file, in steps of one short transaction each.

A step begins where the one before ended and keeps nothing, so that another process may do the next one. All steps show
one revision, whatever is written during the export, because rows carry their revisions.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct, field

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.caller import Caller
from recollect.fairness.slots import yield_to_others
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.replicas import read_at_replica, read_graph
from recollect.graph.graphs.view import GraphView
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction
from recollect.transfer import store
from recollect.transfer.formats import format_named
from recollect.transfer.formats.writer import ExportedEdge, ExportedNode, Numbers, Stage, Writer
from recollect.transfer.model import ExportSelection, Snapshot

T = TypeVar("T")

PAGE_ITEMS = 500
PAGE_BYTES = 1024 * 1024
"""The most that a step reads, which bounds its memory and the length of its transaction."""

ITEMS_PER_YIELD = 100
"""Items that a step formats before other calls go on: a few milliseconds."""

_FIRST = UUID(int=0)
_ORDER = tuple(Stage)


class Export(Struct, frozen=True):
    """What to export, and in which format. A job stores it as JSON: the names there stay as they are."""

    snapshot: Snapshot
    format: str
    selection: ExportSelection = field(name="only", default_factory=ExportSelection)

    @property
    def facts_left_out(self) -> int:
        """How many facts of the graph the format does not hold."""
        return 0 if format_named(self.format).writer.writes_facts else self.snapshot.facts


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a step begins: in which stage of the file, and after which id. `begun`: whether the stage has items yet.

    If the format is one list, `begun` is about the file instead.
    """

    stage: Stage = Stage.ENTITIES
    after: UUID = _FIRST
    begun: bool = False


@dataclass(frozen=True, slots=True)
class ExportChunk:
    """A piece of the file, its number of nodes and relations, and the cursor of the next piece, None after the last."""

    text: str
    items: int
    next: Cursor | None


START = Cursor()


async def open_export(
    tx: Transaction,
    graph_name: str,
    format_name: str,
    *,
    selection: ExportSelection | None = None,
    as_of: str | None = None,
) -> Export:
    """Begin an export of a graph, as it is now or was at `as_of`.

    Raises NotFound, Forbidden, and InvalidInput for an unknown format, or an `as_of` that is no revision or time.
    """
    format_named(format_name)
    return await export_of(await graphs.view(tx, graph_name, as_of), format_name, selection=selection)


async def export_of(view: GraphView, format_name: str, *, selection: ExportSelection | None = None) -> Export:
    """Begin an export of the state that a view shows; raises NotFound if the graph does not exist."""
    graphs.require_there(view)
    graph, at = view.graph, view.at
    if at is None:
        snapshot = await store.find_snapshot(view.tx, graph.id)
    else:
        head = await graphs.head_of(view)
        snapshot = Snapshot(graph.id, at.revision, at.at, head.entities, head.facts, head.placeholders, head.relations)
    return Export(snapshot, format_name, selection or ExportSelection())


async def record_export(db: TenantDatabase, caller: Caller, export: Export) -> None:
    """Record that the caller takes this export, before its first piece is read."""
    async with db.transaction(caller, also_suspended=True) as tx:  # The only write is the record of a read.
        await audit.record(tx, Action.GRAPH_EXPORTED, named("graph", export.snapshot.graph_id), format=export.format)


async def export_step(
    tx: Transaction,
    export: Export,
    cursor: Cursor,
    *,
    page_items: int = PAGE_ITEMS,
    page_bytes: int = PAGE_BYTES,
    writer: Writer | None = None,
) -> ExportChunk:
    """The next piece of the file. `writer` None is the format's own, which keeps nothing between pieces."""
    writer = writer or format_named(export.format).writer
    is_stage_start = cursor.after == _FIRST
    text = writer.opening(cursor.stage) if is_stage_start else ""
    if cursor.stage is Stage.RELATIONS:
        edges = await store.relations_as_of(
            tx,
            export.snapshot,
            export.selection,
            named=not writer.writes_facts,
            hidden=writer.writes_status,
            after=cursor.after,
            limit=page_items,
            max_bytes=page_bytes,
        )
        return _chunk_and_next(writer, cursor, text + await _format_items(writer.edges, edges.items, cursor), edges)
    named = cursor.stage is Stage.ENTITIES
    if not named and not writer.writes_facts:
        return ExportChunk("", 0, Cursor(Stage.RELATIONS, begun=cursor.begun and writer.is_one_list))
    nodes = await store.nodes_as_of(
        tx,
        export.snapshot,
        export.selection,
        named=named,
        hidden=writer.writes_status,
        after=cursor.after,
        limit=page_items,
        max_bytes=page_bytes,
    )
    shown = [node for node in nodes.items if node.record or writer.writes_placeholders]
    page = store.ExportPage(shown, nodes.last)
    return _chunk_and_next(writer, cursor, text + await _format_items(writer.nodes, shown, cursor), page)


async def export_chunks(
    db: TenantDatabase, caller: Caller, export: Export, *, page_items: int = PAGE_ITEMS
) -> AsyncIterator[bytes]:
    """The file in pieces, none of which is empty.

    No transaction is open while a piece is handed out: the reader may be slow, and would hold a connection that others
    need. Each piece is read from the replica if the replica has the graph at the same
    revision as the primary.
    """
    cursor: Cursor | None = START
    while cursor is not None:
        read = partial(export_step, export=export, cursor=cursor, page_items=page_items)
        step = await read_graph(db, caller, export.snapshot.graph_id, read)
        if step.text:
            yield step.text.encode()
        cursor = step.next


async def export_step_at_replica(tx: Transaction, export: Export, cursor: Cursor) -> ExportChunk:
    """The next piece of the file, for a transaction that stays open; also read from the replica if possible."""
    return await read_at_replica(tx, export.snapshot.graph_id, partial(export_step, export=export, cursor=cursor))


async def export_whole(tx: Transaction, export: Export, *, max_bytes: int, max_pages: int) -> str | None:
    """The file, or None if it has more bytes (as JSON text) or takes more steps than given.

    Steps are counted because they bound the transaction: items that a filter leaves out are read, too. Drawings number
    their nodes, as the mcp-memory crate does, which is possible because the file is made in one go.
    """
    writer = type(format_named(export.format).writer)(Numbers())
    pieces: list[str] = []
    size = 0
    cursor: Cursor | None = START
    while cursor is not None:
        if len(pieces) == max_pages:
            return None
        step = await export_step(tx, export, cursor, writer=writer)
        size += encoded_size(step.text)
        if size > max_bytes:
            return None
        pieces.append(step.text)
        cursor = step.next
    return "".join(pieces)


def encoded_size(text: str) -> int:
    """The number of bytes of a text inside JSON."""
    return len(msgspec.json.encode(text)) - 2


def empty(format_name: str) -> str:
    """The file of an empty graph."""
    writer = format_named(format_name).writer
    stages = [stage for stage in Stage if writer.writes_facts or stage is not Stage.FACTS]
    return "".join(writer.opening(stage) + writer.closing(stage) for stage in stages)


async def _format_items(write: Callable[..., str], items: Sequence[T], cursor: Cursor) -> str:
    """Items of a stage as the format writes them. Other calls run in between, so no lock may be held."""
    text = write(items[:ITEMS_PER_YIELD], first=not cursor.begun)
    for start in range(ITEMS_PER_YIELD, len(items), ITEMS_PER_YIELD):
        await asyncio.sleep(0)
        await yield_to_others()
        text += write(items[start : start + ITEMS_PER_YIELD], first=False)
    return text


def _chunk_and_next(
    writer: Writer, cursor: Cursor, text: str, page: store.ExportPage[ExportedNode] | store.ExportPage[ExportedEdge]
) -> ExportChunk:
    """A piece of the file, and the cursor of the next: after this page or, if it was the last, in the next stage."""
    begun = cursor.begun or bool(page.items)
    if page.last is not None:
        return ExportChunk(text, len(page.items), Cursor(cursor.stage, page.last, begun))
    text += writer.closing(cursor.stage)
    if cursor.stage is _ORDER[-1]:
        return ExportChunk(text, len(page.items), None)
    following = _ORDER[_ORDER.index(cursor.stage) + 1]
    return ExportChunk(text, len(page.items), Cursor(following, begun=begun and writer.is_one_list))
