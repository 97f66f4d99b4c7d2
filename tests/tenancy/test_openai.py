"""The toolset `openai`, whose tools have no argument for a graph: memories of another tenant or graph are unknown.

`test_every_tool.py` attacks `fetch`, and `search` in the shape of another toolset.
"""

import json
from uuid import uuid4

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers
from tests.support.guards import Attacked, ids_of

OPENAI = "/mcp/x/openai"
SECRET = "the lighthouse clock runs late"


@pytest.mark.proves("security: fetched-memories")
async def test_memories_of_another_tenant_are_neither_found_nor_fetched(
    attacked: Attacked, gateway: RunningGateway, issue: NewApiKey, caller: Caller, new_tenant: NewTenant, db: Database
) -> None:
    """With both guards, and with each alone."""
    stranger = operator_caller(await new_tenant())
    items = {"items": [{"text": SECRET, "about": ["Pier"]}, {"text": f"In Oslo, {SECRET}"}]}
    async with gateway.http((await issue(caller)).secret, **rpc_headers()) as owner:
        kept = (await gateway.call(owner, "remember", items, path="/mcp"))["structuredContent"]["memories"]
        assert SECRET in json.dumps(await gateway.call(owner, "search", {"query": SECRET}, path=OPENAI))
    ids = await ids_of(db, stranger), await ids_of(db, caller)
    async with attacked.gateway.http((await issue(stranger)).secret, **rpc_headers()) as http:
        await attacked.gateway.call(http, "get_entity", {"name": "nobody"})  # The gateway knows the stranger's graph.
        with attacked.by(*ids):
            found = await attacked.gateway.call(http, "search", {"query": SECRET}, path=OPENAI)
            assert not any(word in json.dumps(found) for word in (SECRET, "Pier", *(memory["id"] for memory in kept)))
            assert found["isError"] or found["structuredContent"] == {"results": []}
            for theirs in {memory[key] for memory in kept for key in ("id", "node")}:
                foreign, unknown = [
                    json.dumps(await attacked.gateway.call(http, "fetch", {"id": id_}, path=OPENAI)).replace(id_, "…")
                    for id_ in (theirs, str(uuid4()))
                ]
                assert foreign == unknown


@pytest.mark.proves("security: fetched-memories")
async def test_a_confined_key_finds_nothing_of_other_graphs(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, db: Database
) -> None:
    async with gateway.http((await issue(caller)).secret, **rpc_headers()) as owner:
        item = {"items": [{"text": SECRET}]}
        told = await gateway.call(owner, "remember", item | {"graph": "closed"}, path="/mcp")
        await gateway.call(owner, "remember", {"items": [{"text": "open"}]}, path="/mcp")
    (kept,) = told["structuredContent"]["memories"]
    async with db.transaction(caller, read_only=True) as tx:
        open_graph = (await graphs.get_graph(tx, "default")).id
    async with gateway.http((await issue(caller, graph_ids=(open_graph,))).secret, **rpc_headers()) as http:
        found = await gateway.call(http, "search", {"query": SECRET}, path=OPENAI)
        assert SECRET not in json.dumps(found)
        assert (await gateway.call(http, "fetch", {"id": kept["id"]}, path=OPENAI))["isError"]
