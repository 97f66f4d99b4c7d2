"""The kinds of job: calls may request them, and each worker knows how to do them."""

from recollect.errors import InvalidInput

COMPACT_GRAPH = "compact_graph"
"""Removes history beyond a graph's retention."""

DEDUPLICATE = "deduplicate"
"""Compares entities, and proposes to merge similar ones, or merges them."""

DISTIL_THREAD = "distil_thread"
"""Has a language model distil facts from a conversation."""

EXPORT_GRAPH = "export_graph"
"""Writes a graph to a file."""

FORGET_STATISTICS = "forget_statistics"
"""Takes new statistics for the planner where an erasure could not."""

IMPORT_GRAPH = "import_graph"
"""Reads a file into a graph."""

REEMBED_PASSAGES = "reembed_passages"
"""Gives a graph vectors of another model, and lets that one serve it."""

REINDEX_PASSAGES = "reindex_passages"
"""Rebuilds the passages of a graph."""

KINDS = (
    COMPACT_GRAPH,
    DEDUPLICATE,
    DISTIL_THREAD,
    EXPORT_GRAPH,
    FORGET_STATISTICS,
    IMPORT_GRAPH,
    REEMBED_PASSAGES,
    REINDEX_PASSAGES,
)

FINISHING = frozenset({FORGET_STATISTICS})
"""Kinds that finish the work of a call: they go on even if the key of that call is revoked."""


def known_kind(kind: str | None) -> str | None:
    """The kind, if there are jobs of it, or None for any; raises InvalidInput."""
    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"There is no such kind of job. The kinds are {', '.join(KINDS)}", path="kind")
    return kind
