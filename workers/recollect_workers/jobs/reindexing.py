"""Rebuild the passages of a graph, which are derived from its memories."""

from uuid import UUID

from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import indexing
from recollect.graph.passages import service as passages
from recollect.jobs.model import Job, StepRefused, StepResult
from recollect.postgres.transactions import Transaction

NODES_PER_STEP = 200

_FIRST = UUID(int=0)


async def reindex_passages(tx: Transaction, job: Job) -> StepResult:
    """Rebuild the passages of the next nodes, in the order of their ids. Done and total count nodes.

    Nodes that are created during the job have their passages already, whether or not a step comes to them. Raises
    StepRefused for a job without a graph.
    """
    if job.graph_id is None:
        raise StepRefused("This job has no graph: one graph is reindexed at a time.")
    revision = await graphs.lock_graph_by_id(tx, job.graph_id)
    after = UUID(job.cursor["after"]) if "after" in job.cursor else _FIRST
    # Lock the index before the passages, as the worker that settles passages does: otherwise they could deadlock.
    await passages.raise_index_epoch(tx, job.graph_id)
    page, more = await indexing.reindex_page(tx, revision, after=after, limit=NODES_PER_STEP)
    done = job.done + len(page)
    if more:
        head = await graphs.head_of(GraphView(tx, revision.graph))
        return StepResult({"after": str(page[-1])}, done, max(done, head.entities + head.facts))
    return StepResult({}, done, done, finished=True, result={"nodes": done})
