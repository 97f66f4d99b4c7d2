"""Pairs of entities that look alike: proposed as a pass does it, and said to be different as people do it."""

from uuid import UUID

from recollect.curation.dismissals import service as dismissals
from recollect.curation.dismissals.model import Dismissal
from recollect.curation.duplicates import proposals, store
from recollect.curation.duplicates.model import Proposal
from recollect.curation.duplicates.similarity import SimilarPair
from recollect.graph.graphs import service as graphs
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import VersionFilter
from tests.support.memories import Agent


async def ids_of(agent: Agent) -> dict[str, UUID]:
    """The ids of the entities of the graph by name, the oldest first."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        nodes, _ = await lineages.list_nodes(await graphs.view(tx, agent.graph), VersionFilter())
    return {node.name: node.node_id for node in nodes if node.name is not None}


async def propose(agent: Agent, one: UUID, other: UUID, likeness: float) -> None:
    """Propose two entities as duplicates."""
    first, second = sorted((one, other))
    async with agent.writing() as (tx, revision):
        await store.insert_duplicates(tx, revision.graph, [SimilarPair(first, second, likeness)], revision.at)


async def proposed(agent: Agent) -> list[Proposal]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await proposals.list_proposals(await graphs.view(tx, agent.graph), offset=0, limit=100)


async def dismiss(agent: Agent, one: UUID, other: UUID) -> None:
    """Say that two entities are different."""
    async with agent.db.transaction(agent.caller) as tx:
        await proposals.dismiss_pair(tx, agent.graph or "default", one, other)


async def take_back(agent: Agent, one: UUID, other: UUID) -> None:
    """Say no longer that two entities are different."""
    async with agent.db.transaction(agent.caller) as tx:
        await proposals.take_back_dismissal(tx, agent.graph or "default", one, other)


async def dismissed(agent: Agent) -> list[Dismissal]:
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        return await dismissals.list_dismissals(await graphs.view(tx, agent.graph), offset=0, limit=100)


async def different(agent: Agent) -> dict[frozenset[str | None], str]:
    """Who said of which names that they are different."""
    return {frozenset((each.name, each.other)): each.dismissed_by for each in await dismissed(agent)}
