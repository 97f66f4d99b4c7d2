"""Which graph a call uses that names none, by a key that is limited to some graphs."""

import pytest

from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, GraphPatch, NewGraph
from recollect.postgres.database import Database
from tests.support.gateway import NewApiKey, RunningGateway, answer, error_of, revision_of, text_of

TEA = [{"text": "Ada drinks tea"}]


@pytest.fixture
async def both(db: Database, caller: Caller) -> tuple[Graph, Graph]:
    async with db.transaction(caller) as tx:
        return await graphs.create_graph(tx, NewGraph("work")), await graphs.create_graph(tx, NewGraph("home"))


async def test_a_key_of_one_graph_uses_it(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, db: Database, both: tuple[Graph, Graph]
) -> None:
    work, _ = both
    key = (await issue(caller, graph_ids=(work.id,))).secret
    async with gateway.client(key, "/mcp") as client:
        await answer(client, "remember", items=TEA)
        assert [hit["text"] for hit in (await answer(client, "recall", query="tea"))["memories"]] == ["Ada drinks tea"]
        named = await answer(client, "recall", query="tea", graph="work")
        assert [hit["text"] for hit in named["memories"]] == ["Ada drinks tea"]
        async with db.transaction(caller) as tx:
            await graphs.configure_graph(tx, "work", GraphPatch(name="office"), "test")
        assert await revision_of(db, caller) == 0, "nothing was written to the graph of other keys"
        assert (await answer(client, "recall", query="tea"))["memories"], "it is the same graph under another name"


async def test_a_chosen_default_comes_first(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, both: tuple[Graph, Graph]
) -> None:
    work, home = both
    key = (await issue(caller, graph_ids=(work.id, home.id), default_graph_id=home.id)).secret
    async with gateway.client(key, "/mcp") as client:
        await answer(client, "remember", items=TEA)
        assert (await answer(client, "recall", query="tea", graph="home"))["memories"]
        assert not (await answer(client, "recall", query="tea", graph="work"))["memories"]


async def test_a_key_of_several_graphs_is_told_to_name_one(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, both: tuple[Graph, Graph], subtests: pytest.Subtests
) -> None:
    key = (await issue(caller, graph_ids=tuple(graph.id for graph in both))).secret
    async with gateway.client(key, "/mcp") as client:
        for tool, arguments in (("recall", {"query": "tea"}), ("remember", {"items": TEA})):
            with subtests.test(tool):
                refused = await client.call_tool(tool, arguments)
                assert error_of(refused) == {"code": "graph_not_allowed", "path": "graph"}
                assert "Name one of them in graph" in text_of(refused)
                refused = await client.call_tool(tool, {**arguments, "graph": "default"})
                assert error_of(refused)["code"] == "graph_not_allowed"
                assert "Ask an admin" in text_of(refused)
