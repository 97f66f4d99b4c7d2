"""Pairs that somebody said are different stay so when their tenant moves to another cell and back."""

from recollect.accounts.tenants.model import Tenant
from recollect.cells.databases import Databases
from recollect.settings.cells import HOME
from tests.support.cells import routed
from tests.support.dismissals import dismiss, dismissed, ids_of, propose, proposed, take_back
from tests.support.memories import Agent
from tests.support.moves import AWAY, TwoCells


async def test_a_moved_tenant_keeps_its_dismissals_and_takes_them_back(
    two_cells: TwoCells, gateway: Databases, agent: Agent, tenant: Tenant
) -> None:
    one, other = sorted((await ids_of(agent)).values())
    await propose(agent, one, other, 0.9)
    await dismiss(agent, other, one)
    through_gateway = routed(gateway, agent)
    before = await dismissed(through_gateway)
    assert [{each.name, each.other} for each in before] == [{"Ada", "Grace"}]
    assert await proposed(through_gateway) == []
    for target in (AWAY, HOME, AWAY):
        await two_cells.move(tenant.slug, to=target)
        assert await dismissed(through_gateway) == before
        assert await proposed(through_gateway) == []
    await take_back(through_gateway, one, other)
    assert await dismissed(through_gateway) == []
    assert [pair.likeness for pair in await proposed(through_gateway)] == [0.9], "it is proposed as before"
