"""Use cases of making a graph's passages anew: start the jobs that do it, which the worker knows."""

from recollect.graph.graphs import service as graphs
from recollect.jobs import service as jobs
from recollect.jobs.kinds import REEMBED_PASSAGES, REINDEX_PASSAGES
from recollect.jobs.model import Job, NewJob
from recollect.platform.transactions import Transaction


async def start_reindex(tx: Transaction, graph_name: str) -> Job:
    """Start a job that makes the passages of a graph anew; where one is under way, that one.

    Raises NotFound, Forbidden, Conflict where the tenant has too many jobs.
    """
    graph = await graphs.get_graph(tx, graph_name)
    return await jobs.schedule(tx, NewJob(REINDEX_PASSAGES, graph.id))


async def start_reembed(tx: Transaction, graph_name: str, *, model: str | None, drop_old: bool) -> Job:
    """Start a job that gives a graph vectors of a model (None: the worker's), or find an equal one under way.

    `drop_old`: it forgets those of other models then. Raises as `start_reindex`.
    """
    graph = await graphs.get_graph(tx, graph_name)
    return await jobs.schedule(tx, NewJob(REEMBED_PASSAGES, graph.id, {"model": model, "drop_old": drop_old}))
