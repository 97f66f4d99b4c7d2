"""Use cases of archiving: keep entities that are no longer used out of recall."""

from collections.abc import Sequence
from dataclasses import replace

from recollect.curation.archiving import store
from recollect.curation.archiving.model import Archivable, ArchiveCriteria, ArchiveResult
from recollect.errors import InvalidInput
from recollect.fairness.computing import batches
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite
from recollect.postgres.transactions import Transaction

MAX_ARCHIVED = 1_000
"""Most entities that one call archives."""


async def archive_entities(
    tx: Transaction, graph_name: str | None, operation: str, criteria: ArchiveCriteria, *, dry_run: bool
) -> ArchiveResult:
    """Give entities the status archived, which keeps them out of recall, as one revision. A dry run writes nothing.

    At most MAX_ARCHIVED entities in one call, longest unchanged first. Raises InvalidInput if no criterion is given.
    """
    if criteria == ArchiveCriteria():
        raise InvalidInput(
            "Give olderThan, importanceBelow or tags: without any of them, all entities would be archived",
            path="olderThan",
        )
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None or dry_run:
        return _result(await store.find_archivable(tx, graph, criteria, limit=MAX_ARCHIVED + 1) if graph else [])
    async with graphs.write_graph_of(tx, graph.id, operation) as revision:
        found = await store.find_archivable(tx, graph, criteria, limit=MAX_ARCHIVED + 1)
        for page in batches(found[:MAX_ARCHIVED], nodes.FEW_READ):
            heads = await nodes.read_heads(tx, graph, [entity.id for entity in page])
            rewrites = [Rewrite(head, replace(head.fields, status="archived", reason=None)) for head in heads.values()]
            await nodes.rewrite(tx, revision, rewrites)
    return _result(found)


def _result(found: Sequence[Archivable]) -> ArchiveResult:
    return ArchiveResult([entity.name for entity in found[:MAX_ARCHIVED]], len(found) > MAX_ARCHIVED)
