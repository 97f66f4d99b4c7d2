"""One function per query of `queries.sql`, or per pair: of now, and of a past moment."""

from recollect.curation.validation.model import IntegrityIssue
from recollect.graph.graphs.model import Graph, Moment
from recollect.platform.db import Transaction
from recollect.platform.sql import Queries

queries = Queries(__package__)


async def find_integrity_issues(
    tx: Transaction, graph: Graph, at: Moment | None, *, examples: int
) -> list[IntegrityIssue]:
    """What is (`at`: was) not as it should be: the first of each kind, each with how many there are of its kind."""
    revision, time = (None, None) if at is None else (at.revision, at.at)
    rows = await tx.fetch(
        queries.find_integrity_issues, graph_id=graph.id, revision=revision, time=time, examples=examples
    )
    return [IntegrityIssue(**row) for row in rows]
