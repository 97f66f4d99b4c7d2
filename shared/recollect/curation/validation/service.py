"""Use cases of validation: say what of a graph is not as it should be."""

from recollect.curation.validation import store
from recollect.curation.validation.model import IntegrityIssue
from recollect.graph.graphs.view import GraphView

MAX_EXAMPLES = 100
"""Faults of one kind that are told one by one, at most."""


async def validate_graph(view: GraphView) -> list[IntegrityIssue]:
    """What is not as it should be in a graph, at most MAX_EXAMPLES of each kind, oldest first."""
    return await store.find_integrity_issues(view, examples=MAX_EXAMPLES)
