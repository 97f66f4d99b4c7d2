"""Use cases of rebuilding a graph's passages: start the jobs that do it in the worker."""

from recollect.graph.graphs import service as graphs
from recollect.jobs import service as jobs
from recollect.jobs.kinds import REEMBED_PASSAGES, REINDEX_PASSAGES
from recollect.jobs.model import Job, NewJob
from recollect.postgres.transactions import Transaction


async def start_reindex(tx: Transaction, graph_name: str) -> Job:
    """Start a job that rebuilds the passages of a graph, or return the one that is under way.

    Raises NotFound, Forbidden, Conflict where the tenant has too many jobs.
    """
    graph = await graphs.get_graph(tx, graph_name)
    return await jobs.schedule(tx, NewJob(REINDEX_PASSAGES, graph.id))


async def start_reembed(tx: Transaction, graph_name: str, *, model: str | None, drop_old: bool) -> Job:
    """Start a job that gives a graph vectors of a model (None: the worker's), or return an equal one under way.

    `drop_old`: the job then deletes the vectors of other models. Raises as `start_reindex` does.
    """
    graph = await graphs.get_graph(tx, graph_name)
    return await jobs.schedule(tx, NewJob(REEMBED_PASSAGES, graph.id, {"model": model, "drop_old": drop_old}))
