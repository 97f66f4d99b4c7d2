"""The kinds of job that there are: what a call may ask for, and what each worker knows how to do."""

from recollect.errors import InvalidInput

COMPACT_GRAPH = "compact_graph"
"""Removes history that is older than a graph keeps."""

DEDUPLICATE = "deduplicate"
"""Compares entities, and proposes or merges those that are alike."""

EXPORT_GRAPH = "export_graph"
"""Writes a graph to a file."""

FORGET_STATISTICS = "forget_statistics"
"""Takes new statistics for the planner where an erasure could not."""

IMPORT_GRAPH = "import_graph"
"""Reads a file into a graph."""

REEMBED_PASSAGES = "reembed_passages"
"""Gives a graph vectors of another model, and lets that one serve it."""

REINDEX_PASSAGES = "reindex_passages"
"""Makes the passages of a graph anew."""

KINDS = (
    COMPACT_GRAPH,
    DEDUPLICATE,
    EXPORT_GRAPH,
    FORGET_STATISTICS,
    IMPORT_GRAPH,
    REEMBED_PASSAGES,
    REINDEX_PASSAGES,
)

FINISHING = frozenset({FORGET_STATISTICS})
"""Kinds that finish what a call has done: they go on, whatever becomes of the key that called."""


def known_kind(kind: str | None) -> str | None:
    """The kind, if there are jobs of it, or None for any; raises InvalidInput."""
    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"There is no such kind of job. The kinds are {', '.join(KINDS)}", path="kind")
    return kind
