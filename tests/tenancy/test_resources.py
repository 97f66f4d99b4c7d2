"""Resources, their lists and the completion of names: a tenant sees only its own, by any URI."""

import json
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference, TextResourceContents

from recollect.accounts.identity.model import operator_caller
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.postgres.database import Database
from recollect.retrieval.search import service as search
from recollect_gateway.mcp_endpoint.prompts_and_resources.resource_uris import (
    GRAPHS,
    NODE_TEMPLATE,
    graph_uri,
    node_uri,
)
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway, answer, rpc_headers
from tests.support.guards import Attacked, ids_of
from tests.tenancy.conftest import Neighbour

Neighbours = tuple[Neighbour, Neighbour]

HIDDEN = ("Platypus", "monotreme", "Anvils")
SECRET = {"name": "Platypus", "entityType": "animal", "observations": ["likes Anvils"]}


async def test_resources_of_another_tenant_look_like_unknown_ones(
    gateway: RunningGateway, issue: NewApiKey, new_tenant: NewTenant
) -> None:
    keys = [(await issue(operator_caller(await new_tenant()))).secret for _ in range(2)]
    async with gateway.client(keys[0]) as owner, gateway.client(keys[1]) as stranger:
        for graph in ("default", "closed"):
            await answer(owner, "create_entities", graph=graph, entities=[SECRET])
        await answer(stranger, "create_entities", entities=[{**SECRET, "name": "Plain"}])
        [graph_id] = [each["id"] for each in (await _read(owner, GRAPHS))["graphs"] if each["name"] == "closed"]
        node_id = (await _read(owner, node_uri("closed", "Platypus")))["node"]["id"]
        foreign = (
            graph_uri("closed"),
            graph_uri(graph_id),
            node_uri("closed", "Platypus"),
            node_uri(graph_id, node_id),
        )
        for uri in (*foreign, node_uri("default", "Platypus"), node_uri("default", node_id)):
            with pytest.raises(MCPError) as told:
                await stranger.read_resource(uri)
            assert (told.value.error.message, told.value.error.data) == (f"Unknown resource: {uri}", {"uri": uri})
        listed = [str(resource.uri) for resource in (await stranger.list_resources()).resources]
        assert listed == ["memory://knowledge-graph", GRAPHS, graph_uri("default")]
        assert "closed" not in json.dumps(await _read(stranger, GRAPHS))
        for chosen in ({}, {"graph": graph_id}, {"graph": "closed"}):
            names = await stranger.complete(
                ResourceTemplateReference(uri=NODE_TEMPLATE), {"name": "name_or_id", "value": "pla"}, chosen
            )
            assert names.completion.values == ([] if chosen else ["Plain"])
        found = await stranger.complete(PromptReference(name="end_of_session"), {"name": "graph", "value": "c"})
        assert found.completion.values == []


async def test_with_each_guard_alone_nothing_is_revealed(
    attacked: Attacked, issue: NewApiKey, db: Database, neighbours: Neighbours
) -> None:
    stranger, victim = neighbours
    told = await _answers_to_stranger(attacked, (await issue(stranger.caller)).secret, db, stranger, victim)
    assert [word for word in HIDDEN if word in told] == []


async def test_without_guards_everything_is_revealed(
    unguarded: Attacked, issue: NewApiKey, db: Database, neighbours: Neighbours
) -> None:
    """This shows that the guards are what hides it."""
    stranger, victim = neighbours
    told = await _answers_to_stranger(unguarded, (await issue(stranger.caller)).secret, db, stranger, victim)
    assert [word for word in HIDDEN if word in told] == list(HIDDEN)


async def _answers_to_stranger(
    attacked: Attacked, key: str, db: Database, stranger: Neighbour, victim: Neighbour
) -> str:
    """What resources, their list and completions answer to a stranger about names that only the victim has."""
    await victim.create(NewEntity("Platypus", "monotreme", ("likes Anvils",)))
    ids = await ids_of(db, stranger.caller), await ids_of(db, victim.caller)
    completed = {
        "ref": {"type": "ref/resource", "uri": NODE_TEMPLATE},
        "argument": {"name": "name_or_id", "value": "pla"},
    }
    asked: list[tuple[str, dict[str, Any]]] = [
        ("resources/list", {}),
        ("completion/complete", completed),
        *(("resources/read", {"uri": uri}) for uri in (GRAPHS, graph_uri("default"), node_uri("default", "Platypus"))),
    ]
    told = []
    async with attacked.gateway.http(key, **rpc_headers()) as http:
        with attacked.by(*ids):
            for method, params in asked:
                answer = await attacked.gateway.post(http, method, params, path="/mcp/x/all")
                told.append(json.dumps(answer).replace(node_uri("default", "Platypus"), ""))
    return "".join(told)


async def test_names_are_completed_only_from_graphs_of_the_tenant(neighbours: Neighbours, db: Database) -> None:
    """Even with the id of the other's graph, which no call can get."""
    mine, other = neighbours
    async with db.transaction(other.caller, read_only=True) as tx:
        theirs = await graphs.view(tx, None)
        assert (await search.complete_names(theirs, "a", limit=9))[0] == ["Ada"]
    async with db.transaction(mine.caller, read_only=True) as tx:
        foreign = GraphView(tx, theirs.graph)
        assert await search.complete_names(foreign, "a", limit=9) == ([], False)


async def _read(client: Client, uri: str) -> Any:
    [content] = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return json.loads(content.text)
