"""Graphs that a gateway knows: the database confirms the graph in each call.

So no call reads the graph of another tenant or an old state.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.cells.databases import Databases
from recollect.embedding import create_embedder
from recollect.errors import Forbidden
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import GraphPatch, NewGraph
from recollect.postgres.database import Database
from recollect.postgres.transactions import GraphChanged
from recollect.retrieval.recall.questions import QuestionEncoder
from recollect.settings import Settings
from recollect_gateway.calls import Call, Services
from tests.conftest import NewTenant
from tests.support.statements import sent_statements


@pytest.fixture
async def services(db: Database, settings: Settings) -> AsyncIterator[Services]:
    """The services of one gateway, which knows no graph yet."""
    embedder = create_embedder(settings)
    yield Services(Databases(db), QuestionEncoder(embedder), settings)
    await embedder.close()


async def read(services: Services, caller: Caller, graph: str) -> tuple[str, bool, int]:
    """The name of the graph that a call reads, whether it exists, and the round trips to begin."""
    with sent_statements() as sent:
        async with Call(caller, services, "read", read_only=True).reading(graph) as view:
            return view.graph.name, view.is_there, len(sent)


async def test_a_known_graph_is_not_looked_up(services: Services, caller: Caller) -> None:
    assert await read(services, caller, "default") == ("default", True, 2)
    assert await read(services, caller, "default") == ("default", True, 1)


@pytest.mark.proves("security: known-graphs")
async def test_a_graph_of_another_tenant_is_not_read_even_if_the_gateway_is_wrong(
    services: Services, db: Database, caller: Caller, new_tenant: NewTenant
) -> None:
    stranger = operator_caller(await new_tenant())
    await read(services, caller, "default")
    victims = services.graph_cache.find(caller.tenant_id, "default")
    assert victims is not None
    assert services.graph_cache.find(stranger.tenant_id, "default") is None
    with pytest.raises(GraphChanged):
        async with db.transaction(stranger, read_only=True, expected_graph=victims.expected):
            raise AssertionError
    services.graph_cache.note(stranger.tenant_id, "default", victims)
    async with Call(stranger, services, "read", read_only=True).reading("default") as view:
        assert view.graph.id != victims.graph.id
    async with db.transaction(stranger, read_only=True) as tx:
        own = await graphs.get_graph(tx, "default")
    known = services.graph_cache.find(stranger.tenant_id, "default")
    assert known is not None
    assert known.graph == own


@pytest.mark.proves("security: known-graphs")
async def test_a_renamed_configured_or_deleted_graph_is_looked_up_again(
    services: Services, db: Database, caller: Caller
) -> None:
    async with db.transaction(caller) as tx:
        first = await graphs.create_graph(tx, NewGraph("first"))
    await read(services, caller, "first")
    async with db.transaction(caller) as tx:
        await graphs.configure_graph(tx, "first", GraphPatch(name="second"), "configure_graph")
    assert (await read(services, caller, "first"))[:2] == ("first", False)
    assert (await read(services, caller, str(first.id)))[:2] == ("second", True)
    async with db.transaction(caller) as tx:
        await graphs.configure_graph(tx, "second", GraphPatch(name="third"), "configure_graph")
    assert (await read(services, caller, str(first.id)))[:2] == ("third", True)
    async with db.transaction(caller) as tx:
        await graphs.delete_graph(tx, "third", "delete_graph")
    assert (await read(services, caller, str(first.id)))[1] is False


async def test_an_allow_list_applies_to_known_graphs(services: Services, caller: Caller) -> None:
    await read(services, caller, "default")
    with pytest.raises(Forbidden):
        await read(services, replace(caller, graphs=frozenset()), "default")
