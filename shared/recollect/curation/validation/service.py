"""Use cases of validation: report the faults in the data of a graph."""

from recollect.curation.validation import store
from recollect.curation.validation.model import IntegrityIssue
from recollect.graph.graphs.view import GraphView

MAX_EXAMPLES = 100
"""Most faults of one kind that are listed one by one."""


async def validate_graph(view: GraphView) -> list[IntegrityIssue]:
    """The faults in the data of a graph, oldest first; at most MAX_EXAMPLES of each kind."""
    return await store.find_integrity_issues(view, examples=MAX_EXAMPLES)
