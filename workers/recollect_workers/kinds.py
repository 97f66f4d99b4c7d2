"""The kinds of job that the worker knows, and the function that does a step of each."""

from collections.abc import Mapping

from recollect.curation.deduplication import OPERATION as DEDUPLICATE
from recollect.passages.model import REEMBED_PASSAGES, REINDEX_PASSAGES
from recollect.retention.model import COMPACT_GRAPH
from recollect.transfer.tasks import EXPORT, IMPORT
from recollect_workers.context import Kind, PreparedKind
from recollect_workers.jobs import compaction, duplicates, indexing, reembedding, transfer

KINDS: Mapping[str, Kind] = {
    REEMBED_PASSAGES: PreparedKind(reembedding.prepare),
    REINDEX_PASSAGES: indexing.reindex_passages,
    COMPACT_GRAPH: compaction.compact_graph,
    DEDUPLICATE: duplicates.deduplicate,
    EXPORT: transfer.export_graph,
    IMPORT: transfer.Imports().step,
}
"""A job of another kind waits for a worker that knows it, such as a newer one."""
