"""The id of a graph can be used wherever its name can, and no graph can pass for another."""

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.errors import ErrorCode, Forbidden, InvalidInput, NotFound
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs import store
from recollect.graph.graphs.model import GraphPatch, NewGraph, new_graph_name
from recollect.postgres.database import Database
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from recollect_gateway.mcp_endpoint.tools import TOOLS
from tests.conftest import NewTenant
from tests.contract.examples import EXAMPLES, Played
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers

ALL = "/mcp/x/all"
ADDRESSES = ("graph", "owner_id", "to_graph")
JOBS = {"list_jobs", "get_job"}
"""Their answers depend on the progress of a worker."""


def addressed(value: Any, graph: str) -> Any:
    """The arguments with this address in place of the graph `default`."""
    if isinstance(value, list):
        return [addressed(item, graph) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: graph if key in ADDRESSES and item == "default" else addressed(item, graph) for key, item in value.items()
    }


async def graph_named(db: Database, caller: Caller, name: str) -> str:
    async with db.transaction(caller, read_only=True) as tx:
        return str((await graphs.get_graph(tx, name)).id)


async def names_of_graphs(db: Database, caller: Caller) -> list[str]:
    async with db.transaction(caller, read_only=True) as tx:
        return [graph.name for graph in await graphs.list_graphs(tx)]


@pytest.mark.proves("memgraph: graph-by-id-or-name")
async def test_every_tool_accepts_the_id_of_a_graph_for_its_name(
    gateway: RunningGateway, key: str, caller: Caller, db: Database
) -> None:
    played = Played()
    async with gateway.http(key, **rpc_headers()) as http:
        graph_id = await graph_named(db, caller, "default")
        for name, arguments in EXAMPLES.items():
            by_id = played.fill(addressed(arguments, graph_id))
            if TOOLS[name].read_only and name not in JOBS:
                told = await gateway.call(http, name, played.fill(arguments), path=ALL)
                assert await gateway.call(http, name, by_id, path=ALL) == told, name
                continue
            result = await gateway.call(http, name, by_id, path=ALL)
            assert not result["isError"], (name, result)
            assert '"scratch"' in json.dumps(by_id) or graph_id not in names_in(result), name
            played.keep(name, result)
    assert await names_of_graphs(db, caller) == ["default"]


def names_in(result: dict[str, Any]) -> list[str]:
    """Every value by which a result names a graph."""
    found, left = [], [result["structuredContent"]]
    while left:
        value = left.pop()
        left += value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
        if isinstance(value, dict):
            found += [name for key in ADDRESSES if isinstance(name := value.get(key), str)]
    return found


@pytest.mark.proves("memgraph: graph-by-id-or-name")
async def test_a_mistyped_id_creates_no_graph(gateway: RunningGateway, key: str, caller: Caller, db: Database) -> None:
    nowhere, passed_over = str(uuid4()), set()
    async with gateway.http(key, **rpc_headers()) as http:
        for name in [name for name in EXAMPLES if not TOOLS[name].read_only]:
            if EXAMPLES[name].get("graph") == "default":
                result = await gateway.call(http, name, addressed(EXAMPLES[name], nowhere), path=ALL)
                assert await names_of_graphs(db, caller) == ["default"], name
                passed_over |= set() if result["isError"] else {name}
    assert passed_over == READING_FIRST


READING_FIRST = {"archive_entities", "compress_graph", "compact"}
"""Tools that write only if they find something: for them, a missing graph is an empty one."""


async def test_answers_name_a_graph_that_is_addressed_by_its_id(
    gateway: RunningGateway, key: str, caller: Caller, db: Database
) -> None:
    graph_id = await graph_named(db, caller, "default")
    async with gateway.http(key, **rpc_headers()) as http:
        put = {"graph": graph_id, "kind": "note", "content": "tea"}
        node = (await gateway.call(http, "put_node", put, path=ALL))["structuredContent"]["node"]
        assert (node["graph"], node["graph_id"]) == ("default", graph_id)
        fact = await gateway.call(http, "create_node", {"owner_id": graph_id.upper(), "text": "cups"}, path=ALL)
        assert fact["structuredContent"]["node"]["owner_id"] == "default"
        hits = await gateway.call(http, "search_graph", {"graph": graph_id, "text": "tea"}, path=ALL)
        assert hits["structuredContent"]["hits"][0]["node"]["graph"] == "default"


@pytest.mark.proves("memgraph: graph-by-id-or-name")
@pytest.mark.parametrize("path", ["", "/export", "/recall"])
async def test_routes_accept_the_id_of_a_graph(
    gateway: RunningGateway, admin_key: str, caller: Caller, db: Database, path: str
) -> None:
    graph_id = await graph_named(db, caller, "default")
    async with gateway.http(admin_key) as http:
        for address in ("default", graph_id):
            url = f"/v1/graphs/{address}{path}"
            answer = await (http.post(url, json={"query": "tea"}) if path == "/recall" else http.get(url))
            assert answer.status_code == 200, answer.text
        made = await http.post(f"/v1/graphs/{graph_id}/memories", json={"items": [{"text": "tea"}]})
        assert made.status_code == 200, made.text
        lost = await http.post(f"/v1/graphs/{uuid4()}/memories", json={"items": [{"text": "tea"}]})
        assert (lost.status_code, lost.json()["code"]) == (404, "graph_not_found")
        refused = await http.post("/v1/graphs", json={"name": str(uuid4())})
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_input")
        key = await http.post("/v1/keys", json={"name": "confined", "graphs": [graph_id], "default_graph": "default"})
        assert key.status_code == 201, key.text
        assert key.json()["graphs"] == [graph_id]
        jobs = await http.get("/v1/jobs", params={"graph": graph_id})
        assert jobs.status_code == 200, jobs.text
    assert await names_of_graphs(db, caller) == ["default"]


@pytest.mark.proves("memgraph: graph-by-id-or-name")
@pytest.mark.parametrize("spell", [str.lower, str.upper])
async def test_no_new_graph_is_named_like_an_id(db: Database, caller: Caller, spell: Callable[[str], str]) -> None:
    name = spell(str(uuid4()))
    async with db.transaction(caller) as tx:
        for make in (graphs.create_graph, graphs.ensure_graph):
            with pytest.raises(InvalidInput) as refused:
                await make(tx, NewGraph(name))
            assert refused.value.path == "name"
        with pytest.raises(InvalidInput):
            await graphs.configure_graph(tx, "default", GraphPatch(name=name), "test")
        own = await graphs.get_graph(tx, "default")
        with pytest.raises(InvalidInput):
            await graphs.ensure_graph(tx, NewGraph(str(own.id)))


def test_a_text_that_only_resembles_an_id_is_a_valid_name() -> None:
    for name in (uuid4().hex, f"user-{uuid4()}", f"{uuid4()}-2", "0190"):
        assert new_graph_name(name) == name


async def test_a_graph_that_was_named_like_an_id_is_found_by_its_name(db: Database, caller: Caller) -> None:
    """Such graphs were made before these names were refused; one has the id of another graph of the tenant."""
    async with db.transaction(caller) as tx:
        default = await graphs.get_graph(tx, "default")
        old = [await store.insert_graph(tx, NewGraph(name)) for name in (str(uuid4()), str(default.id))]
        for graph in old:
            assert graph is not None
            assert await graphs.open_graph(tx, graph.name) == graph
            assert await graphs.open_graph(tx, str(graph.id)) == graph
            assert await graphs.graph_of(tx, graph.id) == graph
            async with graphs.write_graph(tx, graph.name, "test") as revision:
                assert revision.graph == graph
            async with graphs.write_graph_of(tx, graph.id, "test") as revision:
                assert revision.graph == graph
            kept = await graphs.configure_graph(tx, graph.name, GraphPatch(graph.name, metadata={"a": 1}), "test")
            assert (kept.id, kept.name) == (graph.id, graph.name)
        assert await graphs.graph_of(tx, default.id) == default


async def test_an_allow_list_applies_however_a_graph_is_addressed(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, db: Database
) -> None:
    async with db.transaction(caller) as tx:
        mine, closed = [await graphs.create_graph(tx, NewGraph(name)) for name in ("mine", "closed")]
        # Named like the graph that the key may use, and like the one that it may not.
        decoys = [await store.insert_graph(tx, NewGraph(str(graph.id))) for graph in (closed, mine)]
    confined = (await issue(caller, graph_ids=(mine.id,))).secret
    async with gateway.http(confined, **rpc_headers()) as http:
        for address in ("closed", str(closed.id), str(mine.id), str(uuid4()), *(str(d.id) for d in decoys if d)):
            for tool, more in (("read_graph", {}), ("remember", {"items": [{"text": "tea"}]})):
                result = await gateway.call(http, tool, {"graph": address, **more}, path=ALL)
                assert result["isError"], (tool, address)
                assert result["_meta"][ERROR_META]["code"] == ErrorCode.GRAPH_NOT_ALLOWED


async def test_the_id_of_another_tenants_graph_is_unknown(db: Database, caller: Caller, new_tenant: NewTenant) -> None:
    theirs = await graph_named(db, operator_caller(await new_tenant()), "default")
    async with db.transaction(caller) as tx:
        for unknown in (theirs, str(uuid4())):
            assert await graphs.open_graph(tx, unknown) is None
            assert await graphs.find_graph_ids(tx, [unknown]) == {}
            with pytest.raises(NotFound) as missing:
                async with graphs.write_graph(tx, unknown, "test"):
                    pass
            assert missing.value.code == ErrorCode.GRAPH_NOT_FOUND
            with pytest.raises(NotFound):
                await graphs.graph_ids(tx, [unknown])


async def test_a_confined_key_gets_the_same_refusal_for_unknown_ids(db: Database, caller: Caller) -> None:
    default = UUID(await graph_named(db, caller, "default"))
    confined = Caller(caller.tenant_id, caller.tenant, caller.subject, caller.scopes, graphs=frozenset((default,)))
    async with db.transaction(confined) as tx:
        assert (await graphs.get_graph(tx, str(default))).name == "default"
        with pytest.raises(Forbidden):
            async with graphs.write_graph(tx, str(uuid4()), "test"):
                pass


async def test_a_confined_admin_key_gets_the_same_refusal_for_existing_and_unknown_graphs(
    gateway: RunningGateway, db: Database, caller: Caller, issue: NewApiKey
) -> None:
    """Also from the routes, and where it names graphs for another key."""
    default = UUID(await graph_named(db, caller, "default"))
    async with db.transaction(caller) as tx:
        closed = await graphs.create_graph(tx, NewGraph("closed"))
    confined = (await issue(caller, kind="admin", graph_ids=(default,))).secret
    async with gateway.http(confined) as http:
        told = set()
        for graph in ("closed", str(closed.id), "nowhere", str(uuid4())):
            answers = [
                await http.get(f"/v1/graphs/{graph}"),
                await http.get(f"/v1/graphs/{graph}/export"),
                await http.post("/v1/keys", json={"name": "other", "graphs": [graph]}),
                await http.post("/v1/keys", json={"name": "other", "default_graph": graph}),
            ]
            told.add(tuple((answer.status_code, answer.json()["code"]) for answer in answers))
    assert told == {((403, ErrorCode.GRAPH_NOT_ALLOWED),) * 4}
