"""Pairs that somebody said are different stay so when their tenant moves to another cell and back."""

from recollect.accounts.tenants.model import Tenant
from recollect.caller import Caller
from recollect.cells.service import Cells
from recollect.curation.dismissals import service as dismissals
from recollect.curation.dismissals.model import Dismissal
from recollect.curation.duplicates import proposals, store
from recollect.curation.duplicates.model import Proposal
from recollect.curation.duplicates.similarity import SimilarPair
from recollect.graph.graphs import service as graphs
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import VersionFilter
from recollect.settings.cells import HOME
from tests.support.memories import Agent
from tests.support.moves import AWAY, TwoCells


async def _different(cells: Cells, caller: Caller) -> tuple[list[Dismissal], list[Proposal]]:
    async with cells.transaction(caller, read_only=True) as tx:
        view = await graphs.view(tx, None)
        listed = await dismissals.list_dismissals(view, offset=0, limit=10)
        return listed, await proposals.list_proposals(view, offset=0, limit=10)


async def test_a_moved_tenant_keeps_its_dismissals_and_takes_them_back(
    two_cells: TwoCells, gateway: Cells, agent: Agent, tenant: Tenant
) -> None:
    async with agent.writing() as (tx, revision):
        nodes, _ = await lineages.list_nodes(await graphs.view(tx, None), VersionFilter())
        one, other = sorted(node.node_id for node in nodes)
        await store.insert_duplicates(tx, revision.graph, [SimilarPair(one, other, 0.9)], revision.at)
        await proposals.dismiss_pair(tx, "default", other, one)
    before = await _different(gateway, agent.caller)
    assert [{each.name, each.other} for each in before[0]] == [{"Ada", "Grace"}]
    assert before[1] == []
    for target in (AWAY, HOME, AWAY):
        await two_cells.move(tenant.slug, to=target)
        assert await _different(gateway, agent.caller) == before
    async with gateway.transaction(agent.caller) as tx:
        await proposals.take_back_dismissal(tx, "default", one, other)
    listed, proposed = await _different(gateway, agent.caller)
    assert listed == []
    assert [pair.likeness for pair in proposed] == [0.9], "it is proposed as before"
