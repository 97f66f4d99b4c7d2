"""Use cases of validation: say what of a graph is not as it should be."""

from recollect.curation.validation import store
from recollect.curation.validation.model import IntegrityIssue
from recollect.graph.graphs import service as graphs
from recollect.platform.db import Transaction

MAX_EXAMPLES = 100
"""Faults of one kind that are told one by one, at most."""


async def validate_graph(tx: Transaction, graph_name: str | None, *, as_of: str | None = None) -> list[IntegrityIssue]:
    """What is not as it should be in a graph (`as_of`: as it was), at most MAX_EXAMPLES of each kind, oldest first."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is None:
        return []
    return await store.find_integrity_issues(tx, graph, await graphs.moment(tx, graph, as_of), examples=MAX_EXAMPLES)
