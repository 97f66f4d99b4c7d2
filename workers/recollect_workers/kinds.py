"""The kinds of job that the worker knows, and the function that does a step of each."""

from collections.abc import Mapping

from recollect.jobs.kinds import (
    COMPACT_GRAPH,
    DEDUPLICATE,
    DISTIL_THREAD,
    EXPORT_GRAPH,
    FORGET_STATISTICS,
    IMPORT_GRAPH,
    REEMBED_PASSAGES,
    REINDEX_PASSAGES,
)
from recollect.settings import Settings
from recollect_workers.context import Kind, PreparedKind
from recollect_workers.jobs import (
    column_statistics,
    compaction,
    distilling,
    duplicates,
    reembedding,
    reindexing,
    transfer,
)
from recollect_workers.jobs.import_readers import MAX_READERS, ImportReaders


def known_kinds(settings: Settings) -> Mapping[str, Kind]:
    """The kinds of one worker. A job of another kind waits for a worker that knows it, such as a newer one."""
    # After the lease another worker may have the job, and a person may have been erased from its file: drop the reader.
    max_readers = max(MAX_READERS, 2 * settings.max_jobs)
    readers = ImportReaders(idle_seconds=settings.job_lease_seconds, most=max_readers)
    return {
        REEMBED_PASSAGES: PreparedKind(reembedding.prepare),
        REINDEX_PASSAGES: reindexing.reindex_passages,
        COMPACT_GRAPH: compaction.compact_graph,
        DEDUPLICATE: PreparedKind(duplicates.prepare),
        DISTIL_THREAD: PreparedKind(distilling.Distillery(settings.max_jobs).prepare),
        EXPORT_GRAPH: transfer.export_graph,
        FORGET_STATISTICS: column_statistics.forget_statistics,
        IMPORT_GRAPH: transfer.Imports(readers).step,
    }
