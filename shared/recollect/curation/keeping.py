"""Use cases of keeping a graph in shape: archive what is no longer used, say what is not as it should be."""

from collections.abc import Sequence
from dataclasses import replace

from recollect.curation import store
from recollect.curation.model import Archivable, Archived, Criteria, Fault
from recollect.errors import InvalidInput
from recollect.graphs import service as graphs
from recollect.nodes import service as nodes
from recollect.nodes.model import Rewrite
from recollect.platform.db import Transaction

MAX_ARCHIVED = 1_000
"""Entities that one call archives, at most."""

MAX_EXAMPLES = 100
"""Faults of one kind that are told one by one, at most."""


async def archive_entities(
    tx: Transaction, graph_name: str | None, operation: str, criteria: Criteria, *, dry_run: bool
) -> Archived:
    """Give entities the status archived, which keeps them out of recall, as one revision; a dry run writes nothing.

    At most MAX_ARCHIVED, longest unchanged first. Raises InvalidInput where no criterion is given.
    """
    if criteria == Criteria():
        raise InvalidInput("Give olderThan, importanceBelow or tags: all entities would be archived", path="olderThan")
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None or dry_run:
        return _archived(await store.find_archivable(tx, graph, criteria, limit=MAX_ARCHIVED + 1) if graph else [])
    async with graphs.write_graph_of(tx, graph.id, operation) as revision:
        found = await store.find_archivable(tx, graph, criteria, limit=MAX_ARCHIVED + 1)
        heads = await nodes.read_heads(tx, graph, [entity.id for entity in found[:MAX_ARCHIVED]])
        rewrites = [Rewrite(head, replace(head.fields, status="archived")) for head in heads.values()]
        await nodes.rewrite(tx, revision, rewrites)
    return _archived(found)


async def validate_graph(tx: Transaction, graph_name: str | None, *, as_of: str | None = None) -> list[Fault]:
    """What is not as it should be in a graph (`as_of`: as it was), at most MAX_EXAMPLES of each kind, oldest first."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return []
    return await store.count_faults(tx, graph, await graphs.moment(tx, graph, as_of), examples=MAX_EXAMPLES)


def _archived(found: Sequence[Archivable]) -> Archived:
    return Archived([entity.name for entity in found[:MAX_ARCHIVED]], len(found) > MAX_ARCHIVED)
