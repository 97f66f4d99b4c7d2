"""/v1/graphs/{name}/memories and /recall: the tools remember and recall, over plain HTTP."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Scope
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.contract.examples import EXAMPLES
from tests.integration.gateway.test_management import done, problem
from tests.support.gateway import NewApiKey, RunningGateway, revision_of, rpc_headers

MEMORIES = "/v1/graphs/default/memories"
RECALL = "/v1/graphs/default/recall"
HONEY = {"items": [{"text": "Bees make honey"}]}


@pytest.fixture
async def agent(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key) as http:
        yield http


@pytest.fixture
async def other(gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant) -> AsyncIterator[httpx2.AsyncClient]:
    """Another tenant's agent."""
    issued = await issue(operator_caller(await new_tenant()))
    async with gateway.http(issued.secret) as http:
        yield http


async def texts(http: httpx2.AsyncClient, path: str = RECALL, **asked: Any) -> list[str]:
    return [memory["text"] for memory in (await done(http, "POST", path, **asked))["memories"]]


async def test_a_remembered_memory_is_recalled(agent: httpx2.AsyncClient) -> None:
    told = [{"text": "likes tea", "about": ["Ada"], "thread": "chat", "at": "2026-01-31T10:00:00+01:00"}]
    response = await agent.post(MEMORIES, json={"items": told})
    assert response.status_code == 200
    [memory] = response.json()["memories"]
    assert (memory["status"], memory["close"]) == ("new", [])
    [again] = (await done(agent, "POST", MEMORIES, items=told))["memories"]
    assert again == memory | {"status": "known"}
    found = await done(agent, "POST", RECALL, query="Who likes tea?", explain=True)
    assert (found["more"], found["waiting"]) == (False, 0)
    [hit] = found["memories"]
    assert (hit["id"], hit["node"], hit["name"]) == (memory["id"], memory["node"], "Ada")
    assert (hit["text"], hit["at"]) == ("likes tea", "2026-01-31T10:00:00+01:00")
    assert 0 <= hit["why"]["coverage"] <= 1


@pytest.mark.proves("agent-toolset: plain-http")
async def test_answers_equal_those_of_the_tools(gateway: RunningGateway, agent: httpx2.AsyncClient) -> None:
    """With every argument of the tool, except for the graph, which the address names, and a conversation."""
    for tool, path in (("remember", MEMORIES), ("recall", RECALL)):
        arguments = EXAMPLES[tool]
        body = {name: value for name, value in arguments.items() if name not in ("graph", "conversation")}
        first = await done(agent, "POST", path, **body)
        by_tool = await gateway.call(agent, tool, arguments, path="/mcp/x/agent")
        assert (await done(agent, "POST", path, **body)) == by_tool["structuredContent"]
        assert first.keys() == by_tool["structuredContent"].keys()


async def test_recall_is_limited_to_the_past_and_to_a_subtree(
    gateway: RunningGateway, agent: httpx2.AsyncClient
) -> None:
    told = [{"text": f"{name} is made of brass", "about": [name]} for name in ("Engine", "Wheel", "Bell")]
    await done(agent, "POST", MEMORIES, items=told)
    parent = {"entityName": "Wheel", "parentName": "Engine"}
    result = await gateway.call(agent, "set_entity_parent", parent, path="/mcp/x/organize")
    assert not result["isError"], result
    below = {"Engine is made of brass", "Wheel is made of brass"}
    assert set(await texts(agent, query="brass", under="Engine")) == below
    assert await texts(agent, query="brass", under="Engine", as_of="1") == ["Engine is made of brass"]
    assert len(await texts(agent, query="brass", as_of="1")) == 3
    await done(agent, "POST", MEMORIES, items=[{"text": "Brass is sold here"}])
    assert len(await texts(agent, query="brass", as_of="1")) == 3
    problem(await agent.post(RECALL, json={"query": "brass", "under": "Nobody"}), 404, "entity_not_found")
    assert problem(await agent.post(RECALL, json={"query": "brass", "as_of": "noon"}), 400)["path"] == "as_of"


async def test_one_request_is_one_revision_of_that_graph(
    agent: httpx2.AsyncClient, db: Database, caller: Caller
) -> None:
    items = [{"text": "one"}, {"text": "two"}]
    await done(agent, "POST", "/v1/graphs/notes/memories", items=items)
    assert (await revision_of(db, caller, "notes"), await revision_of(db, caller)) == (1, 0)
    assert await texts(agent, "/v1/graphs/notes/recall", query="one") == ["one"]
    assert await texts(agent, query="one") == []
    assert await texts(agent, "/v1/graphs/nowhere/recall", query="one") == []


@pytest.mark.parametrize(
    ("path", "body", "at"),
    [
        (MEMORIES, {}, "items"),
        (MEMORIES, {"items": []}, "items"),
        (MEMORIES, {"items": [{"text": "x"}] * 101}, "items"),
        (MEMORIES, {"items": [{"text": "x"}, {"text": ""}]}, "items.1.text"),
        (MEMORIES, {"items": [{"text": "x", "colour": "red"}]}, "items.0.colour"),
        (MEMORIES, {"items": [{"text": "a\0b"}]}, "items.0.text"),
        (MEMORIES, {"items": [{"text": "x", "at": "2026-01-32T10:00:00"}]}, "items.0.at"),
        (MEMORIES, {"items": [{"text": "x", "at": "0001-01-01T00:00:00+12:00"}]}, "items.0.at"),
        (MEMORIES, {"items": [{"text": "x", "thread": "y" * 257}]}, "items.0.thread"),
        (MEMORIES, {"items": [{"text": "x", "metadata": {"a": "x" * 100_000}}]}, "items.0.metadata"),
        (MEMORIES, {"items": [{"text": "x"}], "graph": "default"}, "graph"),
        ("/v1/graphs/a%20b/memories", HONEY, "graph"),
        (RECALL, {}, "query"),
        (RECALL, {"query": "x", "limit": 101}, "limit"),
        (RECALL, {"queries": ["x"] * 9}, "queries"),
        (RECALL, {"query": "x", "since": "yesterday"}, "since"),
        (RECALL, {"query": "x", "graph": "default"}, "graph"),
        ("/v1/graphs/a%20b/recall", {"query": "x"}, "graph"),
    ],
    ids=lambda value: ascii(value)[:60],
)
async def test_an_invalid_field_is_refused_with_its_path(
    agent: httpx2.AsyncClient, path: str, body: dict[str, Any], at: str
) -> None:
    assert problem(await agent.post(path, json=body), 400)["path"] == at


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"x"', b'{"items":"\xff"}', b"[" * 100_000])
@pytest.mark.parametrize("path", [MEMORIES, RECALL])
async def test_an_invalid_body_is_refused(agent: httpx2.AsyncClient, path: str, body: bytes) -> None:
    problem(await agent.post(path, content=body, headers={"Content-Type": "application/json"}), 400)


async def test_each_route_requires_its_scope(gateway: RunningGateway, issue: NewApiKey, caller: Caller) -> None:
    for scope, allowed, refused in (
        (Scope.MEMORY_READ, (RECALL, {"query": "honey"}), (MEMORIES, HONEY)),
        (Scope.MEMORY_WRITE, (MEMORIES, HONEY), (RECALL, {"query": "honey"})),
    ):
        narrow = await issue(caller, scopes=frozenset({scope}))
        async with gateway.http(narrow.secret) as http:
            assert (await http.post(allowed[0], json=allowed[1])).status_code == 200
            problem(await http.post(refused[0], json=refused[1]), 403, "scope_required")


async def test_an_allow_list_excludes_other_graphs(
    gateway: RunningGateway, admin_key: str, agent: httpx2.AsyncClient
) -> None:
    for name in ("open", "closed"):
        await done(agent, "POST", f"/v1/graphs/{name}/memories", **HONEY)
    async with gateway.http(admin_key) as admin:
        narrow = await done(admin, "POST", "/v1/keys", name="narrow", graphs=["open"])
    async with gateway.http(narrow["secret"]) as http:
        assert await texts(http, "/v1/graphs/open/recall", query="honey") == ["Bees make honey"]
        for name in ("closed", "not-there"):
            problem(await http.post(f"/v1/graphs/{name}/recall", json={"query": "x"}), 403, "graph_not_allowed")
            problem(await http.post(f"/v1/graphs/{name}/memories", json=HONEY), 403, "graph_not_allowed")


async def test_another_tenants_memories_are_not_found(
    gateway: RunningGateway, agent: httpx2.AsyncClient, other: httpx2.AsyncClient, db: Database, caller: Caller
) -> None:
    told = [{"text": "Bees make honey"}, {"text": "likes honey", "about": ["Ada"]}]
    ours = await done(agent, "POST", MEMORIES, items=told)
    before = await revision_of(db, caller)
    empty = {"memories": [], "more": False, "waiting": 0}
    nothing = {"note": "The graph holds no memories yet."}
    assert await done(other, "POST", RECALL, query="honey") == empty | nothing
    assert await done(other, "POST", RECALL, query="honey", about=["Ada"], as_of="0") == empty
    foreign = problem(await other.post(RECALL, json={"query": "honey", "under": "Ada"}), 404, "entity_not_found")
    never = problem(await other.post(RECALL, json={"query": "honey", "under": "Eve"}), 404, "entity_not_found")
    assert json.dumps(foreign).replace("Ada", "Eve") == json.dumps(never)
    theirs = await done(other, "POST", MEMORIES, items=told)
    assert [(one["status"], one["close"]) for one in theirs["memories"]] == [("new", [])] * 2
    assert {one["id"] for one in theirs["memories"]}.isdisjoint(one["id"] for one in ours["memories"])
    assert await revision_of(db, caller) == before


async def test_a_request_without_a_credential_is_refused(gateway: RunningGateway) -> None:
    async with gateway.http(**rpc_headers()) as http:
        for path in (MEMORIES, RECALL):
            problem(await http.post(path, json={}), 401)
