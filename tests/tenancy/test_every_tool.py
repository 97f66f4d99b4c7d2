"""Every tool with ids and names of another tenant: they look like unknown ones, and nothing changes."""

import json
from typing import Any
from uuid import uuid4

import pytest

from recollect.accounts.identity.model import IssuedKey, operator_caller
from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from recollect_gateway.mcp_endpoint.tools import TOOLS
from tests.conftest import NewTenant
from tests.contract.examples import EXAMPLES, Played
from tests.support.gateway import NewApiKey, RunningGateway, revision_of, rpc_headers
from tests.support.guards import BOTH, Attacked, ids_of
from tests.support.statements import sent_statements

ALL = "/mcp/x/all"
SECRET = (
    "likes tea",
    "plays chess",
    "lives in Oslo",
    "Anvils",
    "Bees make honey",
    "made of leaves",
    "lighthouse clock",
)
"""Some texts that the examples write."""


def test_each_tool_has_an_example() -> None:
    assert set(EXAMPLES) == set(TOOLS)


@pytest.mark.proves("security: foreign-ids", "security: foreign-timing")
async def test_ids_and_names_of_another_tenant_look_like_unknown_ones(
    gateway: RunningGateway,
    attacked: Attacked,
    issue: NewApiKey,
    caller: Caller,
    new_tenant: NewTenant,
    db: Database,
) -> None:
    """With both guards, and with each alone."""
    mine, stranger = (await issue(caller, kind="admin")).secret, operator_caller(await new_tenant())
    async with gateway.http(mine, **rpc_headers()) as owner:
        played = await play(gateway, owner)
        before, revision = await everything(gateway, owner), await revision_of(db, caller)
        secrets = words_of(before) | set(played.ids.values())
        await attack_tools(attacked, await issue(stranger, kind="admin"), db, (stranger, caller), played, secrets)
        assert await revision_of(db, caller) == revision
        assert await everything(gateway, owner) == before


async def test_without_guards_the_same_tools_find_everything(
    gateway: RunningGateway,
    unguarded: Attacked,
    issue: NewApiKey,
    caller: Caller,
    new_tenant: NewTenant,
    db: Database,
) -> None:
    """This shows that each guard alone stops the attacks."""
    stranger = operator_caller(await new_tenant())
    async with gateway.http((await issue(caller)).secret, **rpc_headers()) as owner:
        played = await play(gateway, owner)
    ids = await ids_of(db, stranger), await ids_of(db, caller)
    found = set()
    async with unguarded.gateway.http((await issue(stranger)).secret, **rpc_headers()) as http:
        with unguarded.by(*ids):
            for name in [name for name in EXAMPLES if TOOLS[name].read_only]:
                asked = played.fill({key: value for key, value in EXAMPLES[name].items() if key != "filter"})
                told = await unguarded.gateway.call(http, name, asked, path=ALL)
                if any(word in json.dumps(told) and word not in json.dumps(asked) for word in SECRET):
                    found.add(name)
    assert len(found) > 15, sorted(found)


async def attack_tools(
    attacked: Attacked, key: IssuedKey, db: Database, between: tuple[Caller, Caller], played: Played, secrets: set[str]
) -> None:
    """Call every tool with ids and names of another tenant: those that read answer as for unknown ids.

    The statements are the same, too, so that the time reveals nothing.
    """
    stranger, victim = between
    nowhere = Played()
    nowhere.ids = {stand_in: str(uuid4()) for stand_in in played.ids}
    gateway = attacked.gateway
    ids = await ids_of(db, stranger), await ids_of(db, victim)
    async with gateway.http(key.secret, **rpc_headers()) as http:
        await gateway.call(http, "get_entity", {"name": "nobody"}, path=ALL)  # The gateway knows the stranger's graph,
        await gateway.call(http, "graph_stats", {}, path=ALL)  # and what it counts once for each revision.
        with attacked.by(*ids):
            for name in [name for name in EXAMPLES if TOOLS[name].read_only]:
                with sent_statements() as sent:
                    foreign = await gateway.call(http, name, played.fill(EXAMPLES[name]), path=ALL)
                with sent_statements() as sent_of_unknown:
                    unknown = await gateway.call(http, name, nowhere.fill(EXAMPLES[name]), path=ALL)
                assert nameless(foreign, played) == nameless(unknown, nowhere), name
                assert sent == sent_of_unknown or attacked.guards != BOTH, name
                asked = json.dumps(played.fill(EXAMPLES[name]))
                assert [word for word in secrets if word in json.dumps(foreign) and word not in asked] == [], name
            for name in [name for name in EXAMPLES if not TOOLS[name].read_only]:
                await gateway.call(http, name, played.fill(EXAMPLES[name]), path=ALL)


@pytest.mark.proves("memgraph: graph-by-id-or-name")
async def test_the_id_of_another_tenants_graph_looks_like_an_unknown_one(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, new_tenant: NewTenant, db: Database
) -> None:
    """In every argument that names a graph, which may be given by id."""
    theirs = (await issue(operator_caller(await new_tenant()), kind="admin")).secret
    async with db.transaction(caller, read_only=True) as tx:
        foreign = str((await graphs.get_graph(tx, "default")).id)
    before = await revision_of(db, caller)
    async with gateway.http(theirs, **rpc_headers()) as stranger:
        for name, example in EXAMPLES.items():
            places = [key for key in ("graph", "owner_id", "to_graph") if example.get(key) == "default"]
            told = []
            for graph_id in (foreign, str(uuid4())) if places else ():
                with sent_statements() as sent:
                    result = await gateway.call(stranger, name, example | dict.fromkeys(places, graph_id), path=ALL)
                told.append((json.dumps(result, sort_keys=True).replace(graph_id, "…"), *sent))
            assert len(set(told)) == bool(places), name
    assert await revision_of(db, caller) == before


async def test_a_confined_key_sees_nothing_of_related_nodes_in_other_graphs(
    gateway: RunningGateway, issue: NewApiKey, caller: Caller, db: Database
) -> None:
    """A graph outside its allow-list has an entity with relations from and to each of its own nodes."""
    async with gateway.http((await issue(caller)).secret, **rpc_headers()) as owner:
        played = await play(gateway, owner)
        secret = [{"name": "Platypus", "entityType": "animal", "observations": ["likes Anvils"]}]
        await gateway.call(owner, "create_entities", {"graph": "closed", "entities": secret}, path=ALL)
        async with db.transaction(caller, read_only=True) as tx:
            ids = await graphs.graph_ids(tx, ["default", "closed"])
            query = Query.compile(
                "SELECT id FROM nodes WHERE graph_id = :graph_id AND removed_revision IS NULL AND NOT placeholder"
            )
            found = [await tx.fetch(query, graph_id=ids[name]) for name in ("closed", "default")]
            hidden, *near = [row["id"] for rows in found for row in rows]
        for node in near:
            for graph, source, to_graph, target in (
                ("default", node, "closed", hidden),
                ("closed", hidden, "default", node),
            ):
                edge = {"from_lineage": str(source), "to_lineage": str(target), "kind": "tied", "to_graph": to_graph}
                made = await gateway.call(owner, "put_edge", {"graph": graph, **edge}, path=ALL)
                assert not made["isError"], made
        assert "Platypus" in json.dumps(await gateway.call(owner, "read_graph", {}, path=ALL))
    confined = (await issue(caller, graph_ids=(ids["default"],))).secret
    async with gateway.http(confined, **rpc_headers()) as http:
        for name in [name for name in EXAMPLES if TOOLS[name].read_only]:
            asked = played.fill(EXAMPLES[name])
            for arguments in (asked, {key: value for key, value in asked.items() if key not in ("as_of", "filter")}):
                told = json.dumps(await gateway.call(http, name, arguments, path=ALL))
                assert "Platypus" not in told, (name, arguments)
                assert str(hidden) not in told, (name, arguments)


async def play(gateway: RunningGateway, http: Any) -> Played:
    """Run the examples that write, and keep the ids that they return."""
    played = Played()
    for name, arguments in EXAMPLES.items():
        if not TOOLS[name].read_only and not TOOLS[name].destructive:
            played.keep(name, await gateway.call(http, name, played.fill(arguments), path=ALL))
    assert played.ids
    return played


async def everything(gateway: RunningGateway, http: Any) -> Any:
    """The default graph of the tenant."""
    return (await gateway.call(http, "read_graph", {}, path=ALL))["structuredContent"]


def words_of(graph: dict[str, Any]) -> set[str]:
    """The names and the texts of a graph from `read_graph`."""
    words = {entity["name"] for entity in graph["entities"]}
    words |= {text for entity in graph["entities"] for text in entity["observations"]}
    assert len(words) > 10
    return words


def nameless(result: dict[str, Any], played: Played) -> str:
    """A result without the requested ids, which a refusal repeats."""
    text = json.dumps(result, sort_keys=True)
    for answered in played.ids.values():
        text = text.replace(answered, "…")
    return text
