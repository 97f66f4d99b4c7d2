"""The kinds of job that can be asked for by name, over MCP and HTTP alike."""

from recollect.curation.deduplication import OPERATION as DEDUPLICATE
from recollect.errors import InvalidInput
from recollect.passages.model import REEMBED_PASSAGES, REINDEX_PASSAGES
from recollect.retention.model import COMPACT_GRAPH
from recollect.transfer.tasks import EXPORT, IMPORT

KINDS = (COMPACT_GRAPH, DEDUPLICATE, EXPORT, IMPORT, REEMBED_PASSAGES, REINDEX_PASSAGES)
"""Those that the worker knows."""


def known_kind(kind: str | None) -> str | None:
    """The kind, if there are jobs of it, or None for any; raises InvalidInput."""
    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"No kind of job. The kinds are {', '.join(KINDS)}", path="kind")
    return kind
