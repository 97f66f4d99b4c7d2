"""/v1/graphs/{name}/relate, /revise, /forget and /explore: the agent's other tools, over plain HTTP."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from recollect.caller import Caller, Scope
from recollect.postgres.database import Database
from tests.integration.gateway.test_management import done, problem
from tests.support.gateway import NewApiKey, RunningGateway, revision_of, rpc_headers

GRAPH = "/v1/graphs/default"
ADA = {"items": [{"text": "likes tea", "about": ["Ada"]}]}


@pytest.fixture
async def agent(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield http


async def remembered(http: httpx2.AsyncClient, text: str, *about: str) -> str:
    """The id of a new memory."""
    items = [{"text": text, "about": list(about)}]
    [memory] = (await done(http, "POST", f"{GRAPH}/memories", items=items))["memories"]
    memory_id: str = memory["id"]
    return memory_id


@pytest.mark.proves("agent-toolset: plain-http")
async def test_answers_equal_those_of_the_tools(
    gateway: RunningGateway, agent: httpx2.AsyncClient, subtests: pytest.Subtests
) -> None:
    """Each call has no effect when it is repeated, so that tool and route answer the same."""
    memory_id = await remembered(agent, "likes tea", "Ada")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("relate", {"triples": [{"subject": "Ada", "predicate": "works_with", "object": "Charles"}]}),
        (
            "relate",
            {"triples": [{"subject": "Ada", "predicate": "works_with", "object": "Zuse", "metadata": {"a": 1}}]},
        ),
        ("revise", {"id": memory_id, "text": "likes green tea", "tags": ["drinks"], "reason": "said so"}),
        ("revise", {"id": memory_id, "text": "likes coffee", "based_on_version": 1}),
        ("explore", {"start": "Ada"}),
        ("explore", {"start": "Charles", "to": "Zuse", "depth": 2, "direction": "both"}),
        ("forget", {"ids": [memory_id, str(uuid4())], "names": ["Nobody"], "reason": "wrong"}),
    ]
    for verb, body in calls:
        with subtests.test(f"{verb} {body}"):
            first = await done(agent, "POST", f"{GRAPH}/{verb}", **body)
            again = await done(agent, "POST", f"{GRAPH}/{verb}", **body)
            by_tool = await gateway.call(agent, verb, {**body, "graph": "default"}, path="/mcp/x/agent")
            assert by_tool["structuredContent"] == again
            assert first.keys() == again.keys()


async def test_memories_are_related_corrected_and_forgotten(agent: httpx2.AsyncClient) -> None:
    memory_id = await remembered(agent, "likes tea", "Ada")
    triple = {"subject": "Ada", "predicate": "works_with", "object": "Charles"}
    related = await done(agent, "POST", f"{GRAPH}/relate", triples=[triple])
    assert related["relations"] == [{**triple, "status": "new"}]
    revised = await done(agent, "POST", f"{GRAPH}/revise", id=memory_id, text="likes coffee", based_on_version=1)
    assert (revised["status"], revised["version"], revised["text"]) == ("revised", 2, "likes coffee")
    refused = await done(agent, "POST", f"{GRAPH}/revise", id=memory_id, text="likes milk", based_on_version=1)
    assert (refused["status"], refused["version"], refused["conflict"]) == ("conflict", 2, ["likes milk"])
    explored = await done(agent, "POST", f"{GRAPH}/explore", start="Ada")
    assert [node["text"] for node in explored["nodes"] if node.get("name") == "Ada"] == ["likes coffee"]
    assert [(edge["subject"], edge["object"]) for edge in explored["relations"]] == [("Ada", "Charles")]
    forgotten = await done(agent, "POST", f"{GRAPH}/forget", ids=[memory_id], mode="delete")
    assert forgotten == {"forgotten": [memory_id]}
    assert (await done(agent, "POST", f"{GRAPH}/recall", query="What does she like?"))["memories"] == []


async def test_the_past_can_be_explored(agent: httpx2.AsyncClient) -> None:
    await remembered(agent, "likes tea", "Ada")
    await done(agent, "POST", f"{GRAPH}/relate", triples=[{"subject": "Ada", "predicate": "knows", "object": "Bob"}])
    now = await done(agent, "POST", f"{GRAPH}/explore", start="Ada")
    then = await done(agent, "POST", f"{GRAPH}/explore", start="Ada", as_of=1)
    assert (len(now["relations"]), len(then["relations"])) == (1, 0)


async def test_more_nodes_than_a_page_of_a_model_come_at_once(agent: httpx2.AsyncClient) -> None:
    """A tool's answer ends where a model's page is full; that of the route has `max_nodes`."""
    triples = [{"subject": "Hub", "predicate": "has", "object": f"Part {n} {'x' * 400}"} for n in range(60)]
    await done(agent, "POST", f"{GRAPH}/relate", triples=triples)
    items = [{"text": "turns", "about": [triple["object"]]} for triple in triples] + [
        {"text": "turns", "about": ["Hub"]}
    ]
    await done(agent, "POST", f"{GRAPH}/memories", items=items)
    explored = await done(agent, "POST", f"{GRAPH}/explore", start="Hub", max_nodes=50)
    assert (len(explored["nodes"]), explored["cut"]) == (50, "nodes")
    assert len(await done(agent, "POST", f"{GRAPH}/explore", start="Hub")) == 4


FAULTS: list[tuple[str, dict[str, Any], str]] = [
    ("relate", {}, "triples"),
    ("relate", {"triples": []}, "triples"),
    ("relate", {"triples": [{"subject": "a", "predicate": "b", "object": "c"}] * 101}, "triples"),
    ("relate", {"triples": [{"subject": "a", "predicate": "b"}]}, "triples.0.object"),
    ("relate", {"triples": [{"subject": "a", "predicate": " ", "object": "c"}]}, "triples.0.predicate"),
    (
        "relate",
        {"triples": [{"subject": "a", "predicate": "b", "object": "c", "metadata": {"a": "x" * 100_000}}]},
        "triples.0.metadata",
    ),
    ("relate", {"triples": [{"subject": "a", "predicate": "b", "object": "c"}], "graph": "default"}, "graph"),
    ("revise", {}, "id"),
    ("revise", {"id": str(uuid4()), "name": "Ada"}, "id"),
    ("revise", {"id": "nobody"}, "id"),
    ("revise", {"name": "Ada", "status": "gone"}, "status"),
    ("revise", {"name": "Ada", "based_on_version": 0}, "based_on_version"),
    ("forget", {}, "ids"),
    ("forget", {"ids": [str(uuid4())] * 101}, "ids"),
    ("forget", {"names": ["Ada"], "mode": "erase"}, "mode"),
    ("explore", {}, "start"),
    ("explore", {"start": "Ada", "depth": 7}, "depth"),
    ("explore", {"start": "Ada", "max_nodes": 201}, "max_nodes"),
    ("explore", {"start": "Ada", "as_of": "noon"}, "as_of"),
]


async def test_a_wrong_body_is_refused_with_the_place(
    agent: httpx2.AsyncClient, db: Database, caller: Caller, subtests: pytest.Subtests
) -> None:
    await done(agent, "POST", f"{GRAPH}/memories", **ADA)
    before = await revision_of(db, caller)
    for verb, body, at in FAULTS:
        with subtests.test(f"{verb} {str(body)[:60]}"):
            assert problem(await agent.post(f"{GRAPH}/{verb}", json=body), 400)["path"] == at
    problem(await agent.post(f"{GRAPH}/explore", json={"start": "Nobody"}), 404, "entity_not_found")
    problem(await agent.post(f"{GRAPH}/revise", json={"name": "Nobody", "text": "x"}), 404, "entity_not_found")
    assert await revision_of(db, caller) == before


async def test_a_repeated_request_changes_nothing(agent: httpx2.AsyncClient, db: Database, caller: Caller) -> None:
    memory_id = await remembered(agent, "likes tea", "Ada")
    keyed = {"Idempotency-Key": str(uuid4())}
    body = {"id": memory_id, "text": "likes coffee"}
    first = await agent.post(f"{GRAPH}/revise", json=body, headers=keyed)
    await done(agent, "POST", f"{GRAPH}/revise", id=memory_id, text="likes milk")
    before = await revision_of(db, caller)
    again = await agent.post(f"{GRAPH}/revise", json=body, headers=keyed)
    assert (again.json(), again.headers["Idempotency-Replayed"]) == (first.json(), "true")
    problem(await agent.post(f"{GRAPH}/revise", json=body | {"text": "x"}, headers=keyed), 422, "idempotency_mismatch")
    assert await revision_of(db, caller) == before


@pytest.mark.proves("security: pasted-secrets")
async def test_what_names_a_pasted_secret_can_be_forgotten(agent: httpx2.AsyncClient, key: str) -> None:
    """The reason is stored, so that it may hold none, as all that is written."""
    answer = await done(agent, "POST", f"{GRAPH}/forget", names=[key])
    assert answer == {"forgotten": [], "not_found": [key]}
    for verb, body, at in (
        ("forget", {"names": ["Ada"], "reason": key}, "reason"),
        ("revise", {"name": "Ada", "text": f"has {key}"}, "text"),
        ("relate", {"triples": [{"subject": key, "predicate": "has", "object": "b"}]}, "triples.0.subject"),
    ):
        said = problem(await agent.post(f"{GRAPH}/{verb}", json=body), 400)
        assert (said["path"], key in said["detail"]) == (at, False)


async def test_reading_is_no_leave_to_write(gateway: RunningGateway, issue: NewApiKey, caller: Caller) -> None:
    reader = (await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))).secret
    async with gateway.http(reader) as http:
        for verb in ("relate", "revise", "forget"):
            problem(await http.post(f"{GRAPH}/{verb}", json={}), 403, "scope_required")
        problem(await http.post(f"{GRAPH}/explore", json={"start": "Nobody"}), 404, "entity_not_found")
