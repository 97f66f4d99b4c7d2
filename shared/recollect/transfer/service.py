"""Use cases of transfer: import a chunk, check one, export a graph."""

from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from recollect.caller import Caller
from recollect.graphs import service as graphs
from recollect.graphs.model import Revision
from recollect.nodes import service as nodes
from recollect.nodes.model import NewEntity, NewObservation
from recollect.platform.db import Database, Transaction
from recollect.relations import service as relations
from recollect.relations.model import NewRelation
from recollect.transfer import store
from recollect.transfer.model import (
    Chunk,
    Imported,
    Item,
    Line,
    Snapshot,
    judged,
    merged_by_name,
    require_unbroken,
)

PAGE_ITEMS = 500
PAGE_BYTES = 1024 * 1024
"""What an export reads at once: it bounds its memory, and the length of each of its transactions."""

_FIRST = UUID(int=0)


async def import_chunk(tx: Transaction, graph_name: str, chunk: Chunk, *, strict: bool = False) -> Imported:
    """Write a chunk's lines in one revision; what is known already stays as it is, so that it may be repeated.

    An entity that exists keeps its kind and gains the observations that it lacks; a relation may name entities that are
    not there. `strict` raises InvalidInput where a line is broken. Raises Forbidden.
    """
    if strict:
        require_unbroken(chunk)
    if not chunk.lines:  # a graph is made by the first line that is kept
        await graphs.open_graph(tx, graph_name)
        return Imported(broken=chunk.broken)
    async with graphs.write_graph(tx, graph_name, "import") as revision:
        admitted = judged(chunk, revision.graph)
        if strict:
            require_unbroken(admitted)
        return replace(await _write(tx, revision, admitted.lines), broken=admitted.broken)


async def check_chunk(tx: Transaction, graph_name: str, chunk: Chunk, *, strict: bool = False) -> Imported:
    """What `import_chunk` would say of the chunk's broken lines; writes nothing, and counts nothing."""
    checked = judged(chunk, await graphs.open_graph(tx, graph_name))
    return Imported(broken=(require_unbroken(checked) if strict else checked).broken)


async def open_snapshot(tx: Transaction, graph_name: str, *, as_of: str | None = None) -> Snapshot:
    """The state of a graph (`as_of`: a past one) from which an export reads.

    Raises NotFound, Forbidden, and InvalidInput for an `as_of` that is no revision or time of the graph.
    """
    graph = await graphs.get_graph(tx, graph_name)
    at = await graphs.moment(tx, graph, as_of)
    if at is None:
        return await store.find_snapshot(tx, graph.id)
    return Snapshot(graph.id, at.revision, at.at, (await graphs.head_of(tx, graph, at=at)).facts)


async def export_items(
    db: Database, caller: Caller, snapshot: Snapshot, *, page_items: int = PAGE_ITEMS, page_bytes: int = PAGE_BYTES
) -> AsyncIterator[Sequence[Item]]:
    """Every entity and then every relation of that state, oldest first, in pages that are never empty.

    Each page is a short transaction of its own, and none is open while a page is handed out: the reader may be slow,
    and a connection held at its pace would be one less for everybody. Rows carry their revisions, so that all pages
    show the one state whatever is written meanwhile.
    """
    entities_as_of = partial(store.entities_as_of, max_bytes=page_bytes)
    for next_page in (entities_as_of, store.relations_as_of):
        after: UUID | None = _FIRST
        while after is not None:
            async with db.transaction(caller, read_only=True) as tx:
                page = await next_page(tx, snapshot, after=after, limit=page_items)
            if page.items:
                yield page.items
            after = page.last


async def _write(tx: Transaction, revision: Revision, lines: Sequence[Line]) -> Imported:
    items = [line.item for line in lines]
    made, said = await _write_entities(tx, revision, [item for item in items if isinstance(item, NewEntity)])
    wanted = [item for item in items if isinstance(item, NewRelation)]
    edges = await relations.create_relations(tx, revision, wanted) if wanted else []
    known = _count_known(items, made, said, {edge.triple for edge in edges})
    return Imported(len(made), len(said), len(edges), known)


async def _write_entities(
    tx: Transaction, revision: Revision, entities: list[NewEntity]
) -> tuple[set[str], set[tuple[str, str]]]:
    """Names of the entities that are new, and the (name, observation) pairs that are."""
    if not entities:
        return set(), set()
    wanted = merged_by_name(entities)
    created = [entity for _, entity in await nodes.create_entities(tx, revision, wanted)]
    made = {entity.name for entity in created}
    told = [NewObservation(entity.name, text) for entity in wanted for text in entity.observations]
    lacking = [new for new in told if new.entity not in made]
    added = await nodes.add_observations(tx, revision, lacking) if lacking else []
    said = {(entity.name, text) for entity in created for text in entity.observations}
    return made, said | {(observation.entity, observation.content) for observation in added}


def _count_known(
    items: Iterable[Item], made: set[str], said: set[tuple[str, str]], related: set[tuple[str, str, str]]
) -> int:
    """How many items said only what was known, or what an item before them had said."""
    made, said, related, known = set(made), set(said), set(related), 0
    for item in items:
        if isinstance(item, NewRelation):
            known += item.triple not in related
            related.discard(item.triple)
        else:
            fresh = {(item.name, text) for text in item.observations} & said
            known += item.name not in made and not fresh
            made.discard(item.name)
            said -= fresh
    return known
