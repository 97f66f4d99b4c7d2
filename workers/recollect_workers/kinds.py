"""The kinds of job that the worker knows, and the function that does a step of each."""

from collections.abc import Mapping

from recollect.curation.deduplication import OPERATION as DEDUPLICATE
from recollect.passages.model import REEMBED_PASSAGES, REINDEX_PASSAGES
from recollect.retention.model import COMPACT_GRAPH
from recollect.settings import Settings
from recollect.transfer.tasks import EXPORT, IMPORT
from recollect_workers.context import Kind, PreparedKind
from recollect_workers.jobs import compaction, duplicates, indexing, reembedding, transfer
from recollect_workers.jobs.reading import Readers


def known_kinds(settings: Settings) -> Mapping[str, Kind]:
    """Those of one worker. A job of another kind waits for a worker that knows it, such as a newer one."""
    # What a worker has not gone on with for that long another may have, and a person may have been erased from it.
    readers = Readers(idle_seconds=settings.job_lease_seconds)
    return {
        REEMBED_PASSAGES: PreparedKind(reembedding.prepare),
        REINDEX_PASSAGES: indexing.reindex_passages,
        COMPACT_GRAPH: compaction.compact_graph,
        DEDUPLICATE: duplicates.deduplicate,
        EXPORT: transfer.export_graph,
        IMPORT: transfer.Imports(readers).step,
    }
