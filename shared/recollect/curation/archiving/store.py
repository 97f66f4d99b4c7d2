"""One function per query of `queries.sql`."""

from recollect.curation.archiving.model import Archivable, ArchiveCriteria
from recollect.graph.graphs.model import Graph
from recollect.graph.nodes.model import any_case
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)


async def find_archivable(tx: Transaction, graph: Graph, criteria: ArchiveCriteria, *, limit: int) -> list[Archivable]:
    """Entities that meet the criteria and are not archived, longest unchanged first."""
    return await tx.fetch_objects(
        queries.find_archivable,
        Archivable,
        graph_id=graph.id,
        older_than=criteria.older_than,
        importance_below=criteria.importance_below,
        tags=any_case(criteria.tags),
        limit=limit,
    )
