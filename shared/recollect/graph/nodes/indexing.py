"""The passages of nodes: which texts of a node are searched, and when their passages are rebuilt."""

from collections.abc import AsyncIterator, Container, Sequence
from itertools import accumulate
from uuid import UUID

from recollect.fairness.computing import collect_yielding
from recollect.graph.graphs.model import Revision
from recollect.graph.json_values import same_json
from recollect.graph.nodes import store
from recollect.graph.nodes.model import NewFact, NodeFields, Rewrite, unique
from recollect.graph.passages import service as passages
from recollect.graph.passages.labels import memory_labels
from recollect.graph.passages.model import IndexedText, Source
from recollect.postgres.transactions import Transaction

MAX_REINDEXED = 2_000
"""The maximum number of observations in one step of a reindex, unless one node has more: all of them are in memory."""

MAX_INDEXED, MAX_INDEXED_CHARACTERS = 2_000, 2_000_000
"""The maximum number of texts, and of characters in them, of which a write makes passages at a time."""


async def index_facts(tx: Transaction, revision: Revision, facts: Sequence[tuple[UUID, NewFact]]) -> None:
    """Index new facts, given with their ids."""
    await passages.index_memories(tx, revision, (_text_of_fact(*fact, revision) for fact in facts))


async def index_nodes(
    tx: Transaction, revision: Revision, node_ids: Sequence[UUID], *, without_names: Container[str] = ()
) -> None:
    """Index new nodes, but not these names."""
    memories = passages.without_needless_names([memory async for memory in store.memories_of_nodes(tx, node_ids)])
    indexed = [memory for memory in memories if memory.source != Source.NAME or memory.text not in without_names]
    await passages.index_memories(tx, revision, indexed)


async def index_rewritten(
    tx: Transaction, revision: Revision, rewrites: Sequence[Rewrite], divided: Container[UUID]
) -> None:
    """Rebuild or relabel the passages of rewritten nodes, if the fields that they are made from have changed.

    `divided`: nodes whose passages are rebuilt in any case (`store.rewrite_heads`).
    """
    changed = [r.head.id for r in rewrites if r.head.id in divided or _text(r.fields) != _text(r.head.fields)]
    await reindex(tx, revision, changed)
    worded = [r for r in rewrites if r.fields.content is not None]
    relabelled = await collect_yielding(None if _has_same_labels(r.fields, r.head) else r.head.id for r in worded)
    await _relabel(tx, revision, sorted({node_id for node_id in relabelled if node_id is not None} - set(changed)))


async def reindex(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Rebuild the passages of live nodes. A new name needs it too: every passage is matched by its node's name."""
    if node_ids:
        ids = unique(node_ids)
        await passages.forget_nodes(tx, revision, ids)
        async for batch in _batches(store.memories_of_nodes(tx, ids)):
            await passages.index_memories(tx, revision, batch)
        await passages.hide_names(tx, revision, ids)


async def _batches(memories: AsyncIterator[IndexedText]) -> AsyncIterator[list[IndexedText]]:
    """Texts in batches of MAX_INDEXED and MAX_INDEXED_CHARACTERS at most; a longer text is a batch by itself."""
    batch, size = list[IndexedText](), 0
    async for memory in memories:
        if batch and (len(batch) == MAX_INDEXED or size + len(memory.text) > MAX_INDEXED_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(memory)
        size += len(memory.text)
    if batch:
        yield batch


async def reindex_page(
    tx: Transaction, revision: Revision, *, after: UUID, limit: int, max_observations: int = MAX_REINDEXED
) -> tuple[list[UUID], bool]:
    """Rebuild the passages of the next nodes after the id `after`; return their ids, in order, and whether more follow.

    They are `limit` nodes at most, with `max_observations` in all, or one node with more. `revision` is the graph's
    newest one, and the caller holds the graph's lock: no memory changes.
    """
    listed = await store.list_node_ids(tx, revision.graph, after=after, limit=limit)
    if not listed:
        return [], False
    counts = await store.count_observations(tx, listed)
    fitting = sum(total <= max_observations for total in accumulate(counts[node_id] for node_id in listed))
    node_ids = listed[: max(fitting, 1)]
    await passages.rebuild(tx, revision, node_ids, [memory async for memory in store.memories_of_nodes(tx, node_ids)])
    return node_ids, len(listed) == limit or len(node_ids) < len(listed)


async def _relabel(tx: Transaction, revision: Revision, node_ids: Sequence[UUID]) -> None:
    """Renew the passages of the nodes' own texts, which are found by the nodes' labels, too; vectors and times stay."""
    if not node_ids:
        return
    texts = [memory async for memory in store.memories_of_nodes(tx, node_ids, with_observations=False)]
    own = passages.without_needless_names(texts)
    await passages.renew_memories(tx, revision, own)
    await passages.hide_names(tx, revision, [memory.node_id for memory in own if memory.source == Source.NAME])


def _text(fields: NodeFields) -> tuple[object, ...]:
    """The fields that a node's passages are made from."""
    said = fields.said_at, fields.said_offset
    return fields.name, fields.content, fields.expires_at, fields.thread, said, fields.placeholder


def _has_same_labels(fields: NodeFields, other: NodeFields) -> bool:
    """Whether the fields are the same that the labels of a node's passages are made from (`memory_labels`)."""
    same_words = (fields.kind, fields.tags, fields.source) == (other.kind, other.tags, other.source)
    return same_words and same_json(fields.metadata, other.metadata)


def _text_of_fact(node_id: UUID, fact: NewFact, revision: Revision) -> IndexedText:
    return IndexedText(
        node_id,
        node_id,
        Source.FACT,
        fact.content,
        revision.actor,
        None,
        fact.thread,
        fact.said_at,
        fact.expires_at,
        said_offset=fact.said_offset,
        labels=memory_labels(fact.kind, fact.tags, fact.source, fact.metadata),
    )
