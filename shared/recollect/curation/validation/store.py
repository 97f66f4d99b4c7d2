"""One function per query of `queries.sql`."""

from recollect.curation.validation.model import IntegrityIssue
from recollect.graph.graphs.view import GraphView
from recollect.postgres.sql import Queries

queries = Queries(__package__)


async def find_integrity_issues(view: GraphView, *, examples: int) -> list[IntegrityIssue]:
    """The first faults of each kind, each with the number of faults of that kind."""
    return await view.fetch_objects(queries.find_integrity_issues, IntegrityIssue, examples=examples)
