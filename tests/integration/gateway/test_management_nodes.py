"""Browsing a graph without MCP: nodes, their versions and relations, search, and changes."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller, Scope
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from tests.conftest import NewTenant
from tests.support.gateway import NewApiKey, RunningGateway

ENTITIES = [
    {"name": "Ada", "entityType": "person", "observations": ["writes programs", "likes tea"]},
    {"name": "Adam", "entityType": "person", "observations": []},
    {"name": "Babbage", "entityType": "person", "observations": ["builds engines"]},
    {"name": "Engine", "entityType": "machine", "observations": []},
]
RELATIONS = [
    {"from": "Ada", "to": "Babbage", "relationType": "knows"},
    {"from": "Ada", "to": "Engine", "relationType": "programs"},
    {"from": "Babbage", "to": "Ada", "relationType": "admires"},
]
GRAPH = "/v1/graphs/default"
ANY = {"If-Match": "*"}
ID = "0190a1b2-0000-7000-8000-000000000000"
LOOKS = [
    "",
    "/nodes",
    "/nodes/Ada",
    "/nodes/Ada/history",
    "/nodes/Ada/relations",
    "/search?q=Ada",
    "/changes",
]


async def people(gateway: RunningGateway, secret: str) -> None:
    """Three people and a machine, in the graph `default`."""
    async with gateway.http(secret) as http:
        await gateway.call(http, "create_entities", {"entities": ENTITIES})
        await gateway.call(http, "create_relations", {"relations": RELATIONS})


@pytest.fixture
async def agent(gateway: RunningGateway, key: str) -> AsyncIterator[httpx2.AsyncClient]:
    await people(gateway, key)
    async with gateway.http(key) as http:
        yield http


async def read(http: httpx2.AsyncClient, path: str, **query: Any) -> dict[str, Any]:
    response = await http.get(path, params=query)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def every(http: httpx2.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    """All entries of a list, page by page."""
    found: list[dict[str, Any]] = []
    while True:
        page = await read(http, path, **query)
        assert len(page["items"]) <= query.get("limit", 50)
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        query["cursor"] = page["next_cursor"]


async def refused(http: httpx2.AsyncClient, path: str, **query: Any) -> tuple[int, str]:
    response = await http.get(path, params=query)
    assert response.headers["Content-Type"].startswith("application/problem+json")
    return response.status_code, response.json()["code"]


async def names(http: httpx2.AsyncClient, **query: Any) -> list[str | None]:
    return [node["name"] for node in await every(http, f"{GRAPH}/nodes", **query)]


class TestNodes:
    @pytest.mark.parametrize("limit", [1, 2, 3, 50])
    async def test_pages_of_nodes_are_ordered_by_age_and_complete(self, agent: httpx2.AsyncClient, limit: int) -> None:
        assert await names(agent, limit=limit) == ["Ada", "Adam", "Babbage", "Engine"]

    async def test_each_filter_narrows_the_list(self, gateway: RunningGateway, agent: httpx2.AsyncClient) -> None:
        await agent.post(f"{GRAPH}/memories", json={"items": [{"text": "tea is hot", "tags": ["Drinks"]}]})
        assert await names(agent, prefix="ad") == ["Ada", "Adam"]
        assert await names(agent, prefix="ad%") == []
        assert await names(agent, kind="machine") == ["Engine"]
        assert await names(agent, kind=["machine", "person"], prefix="e") == ["Engine"]
        (fact,) = await every(agent, f"{GRAPH}/nodes", tag="drinks")
        assert (fact["name"], fact["text"], fact["tags"]) == (None, "tea is hot", ["Drinks"])
        assert await names(agent, status="outdated") == []
        await gateway.call(agent, "forget", {"ids": [fact["id"]]}, path="/mcp")
        assert await names(agent, status="outdated") == [None]
        assert None not in await names(agent, status="active")

    async def test_a_page_continues_even_if_earlier_nodes_were_deleted(
        self, gateway: RunningGateway, agent: httpx2.AsyncClient
    ) -> None:
        first = await read(agent, f"{GRAPH}/nodes", limit=2)
        await gateway.call(agent, "delete_entities", {"entityNames": ["Ada"]})
        rest = await read(agent, f"{GRAPH}/nodes", limit=2, cursor=first["next_cursor"])
        assert [node["name"] for node in rest["items"]] == ["Babbage", "Engine"]

    async def test_the_past_is_listed_as_it_was(self, gateway: RunningGateway, agent: httpx2.AsyncClient) -> None:
        await gateway.call(agent, "delete_entities", {"entityNames": ["Ada"]})
        assert await names(agent, as_of="2", limit=1, prefix="a") == ["Ada", "Adam"]
        assert await names(agent, prefix="a") == ["Adam"]
        assert (await read(agent, GRAPH, as_of="1"))["relations"] == 0
        assert (await refused(agent, f"{GRAPH}/nodes", as_of="99"))[0] == 400

    @pytest.mark.parametrize("cursor", ["", "x", "1.1", f"{ID}.", f"{ID}.x", f"{ID}.99999999999"])
    async def test_an_invalid_cursor_is_refused(self, agent: httpx2.AsyncClient, cursor: str) -> None:
        assert await refused(agent, f"{GRAPH}/nodes", cursor=cursor) == (400, "invalid_input")

    async def test_long_contents_are_cut_in_lists_only(self, agent: httpx2.AsyncClient) -> None:
        text = ("tea " * 1_000).strip()
        await agent.post(f"{GRAPH}/memories", json={"items": [{"text": text}]})
        (fact,) = [node for node in await every(agent, f"{GRAPH}/nodes") if node["name"] is None]
        assert (fact["text"], fact["text_cut"]) == (text[:500], True)
        assert (await read(agent, f"{GRAPH}/nodes/{fact['id']}"))["content"] == text


class TestOneNode:
    async def test_a_node_is_read_by_name_and_by_id(self, agent: httpx2.AsyncClient) -> None:
        ada = await read(agent, f"{GRAPH}/nodes/Ada")
        assert (ada["name"], ada["kind"], ada["version"]) == ("Ada", "person", 1)
        assert ada["observations"] == ["writes programs", "likes tea"]
        assert await read(agent, f"{GRAPH}/nodes/{ada['id']}") == ada

    async def test_an_unknown_node_is_not_found(self, agent: httpx2.AsyncClient) -> None:
        for path in ("", "/history", "/relations"):
            assert await refused(agent, f"{GRAPH}/nodes/Nobody{path}") == (404, "entity_not_found")
            assert await refused(agent, f"{GRAPH}/nodes/{uuid4()}{path}") == (404, "node_not_found")

    async def test_a_placeholder_is_not_a_node(self, gateway: RunningGateway, agent: httpx2.AsyncClient) -> None:
        edge = {"from": "Ada", "to": "Byron", "relationType": "child of"}
        await gateway.call(agent, "create_relations", {"relations": [edge]})
        assert await refused(agent, f"{GRAPH}/nodes/Byron") == (404, "entity_not_found")
        relations = await every(agent, f"{GRAPH}/nodes/Ada/relations", type="child of")
        assert [relation["target"]["name"] for relation in relations] == ["Byron"]

    async def test_history_is_listed_newest_first_even_of_a_deleted_node(
        self, gateway: RunningGateway, agent: httpx2.AsyncClient
    ) -> None:
        ada = await read(agent, f"{GRAPH}/nodes/Ada")
        for importance in (3, 4, 5):
            revised = {"name": "Ada", "importance": importance, "reason": "because"}
            await gateway.call(agent, "revise", revised, path="/mcp")
        await gateway.call(agent, "delete_entities", {"entityNames": ["Ada"]})
        assert await refused(agent, f"{GRAPH}/nodes/Ada/history") == (404, "entity_not_found")
        for limit in (1, 2, 50):
            versions = await every(agent, f"{GRAPH}/nodes/{ada['id']}/history", limit=limit)
            assert [version["version"] for version in versions][-4:] == [4, 3, 2, 1]
            assert [version["importance"] for version in versions][-4:] == [5, 4, 3, None]


class TestRelations:
    @pytest.mark.parametrize("limit", [1, 2, 50])
    async def test_relations_of_both_directions_are_listed_in_pages(
        self, agent: httpx2.AsyncClient, limit: int
    ) -> None:
        found = await every(agent, f"{GRAPH}/nodes/Ada/relations", limit=limit)
        told = [(one["type"], one["direction"], one["source"]["name"], one["target"]["name"]) for one in found]
        assert told == [
            ("knows", "outgoing", "Ada", "Babbage"),
            ("programs", "outgoing", "Ada", "Engine"),
            ("admires", "incoming", "Babbage", "Ada"),
        ]

    async def test_relations_with_ordinals_come_first_and_pages_keep_their_order(
        self, gateway: RunningGateway, agent: httpx2.AsyncClient
    ) -> None:
        ids = {node["name"]: node["id"] for node in await every(agent, f"{GRAPH}/nodes")}
        for ordinal, (kind, target) in enumerate([("c", "Engine"), ("b", "Adam"), ("a", "Babbage")]):
            edge = {"from_lineage": ids["Ada"], "to_lineage": ids[target], "kind": kind, "ordinal": -1 - ordinal}
            await gateway.call(agent, "put_edge", edge, path="/mcp/x/lineage")
        whole = [one["type"] for one in await every(agent, f"{GRAPH}/nodes/Ada/relations")]
        assert whole == ["a", "b", "c", "knows", "programs", "admires"]
        assert [one["type"] for one in await every(agent, f"{GRAPH}/nodes/Ada/relations", limit=1)] == whole

    async def test_relations_are_filtered_by_direction_type_and_revision(
        self, gateway: RunningGateway, agent: httpx2.AsyncClient
    ) -> None:
        path = f"{GRAPH}/nodes/Ada/relations"
        assert [one["type"] for one in await every(agent, path, direction="incoming")] == ["admires"]
        assert [one["type"] for one in await every(agent, path, type=["knows", "admires"])] == ["knows", "admires"]
        await gateway.call(agent, "delete_relations", {"relations": RELATIONS[:1]})
        assert [one["type"] for one in await every(agent, path)] == ["programs", "admires"]
        past = await every(agent, path, as_of="2", limit=1)
        assert [one["type"] for one in past] == ["knows", "programs", "admires"]


class TestSearch:
    async def test_search_finds_entities_and_facts(self, agent: httpx2.AsyncClient) -> None:
        await agent.post(f"{GRAPH}/memories", json={"items": [{"text": "The engine was never built"}]})
        found = await every(agent, f"{GRAPH}/search", q="Which engine was built?")
        told = [(one["node"]["name"], one["node"]["text"]) for one in found]
        assert (None, "The engine was never built") in told
        assert told[0][0] == "Engine"
        assert ["builds engines"] in [one["matches"] for one in found]

    async def test_pages_follow_one_ranking_and_filters_apply(self, agent: httpx2.AsyncClient) -> None:
        items = [{"text": f"tea number {number} is hot"} for number in range(8)]
        await agent.post(f"{GRAPH}/memories", json={"items": items})
        whole = [one["node"]["id"] for one in await every(agent, f"{GRAPH}/search", q="hot tea")]
        assert len(whole) >= 8
        paged = [one["node"]["id"] for one in await every(agent, f"{GRAPH}/search", q="hot tea", limit=3)]
        assert paged == whole
        machines = await every(agent, f"{GRAPH}/search", q="Ada and the Engine", kind="machine")
        assert {one["node"]["name"] for one in machines} == {"Engine"}
        assert await every(agent, f"{GRAPH}/search", q="Ada", tag="of nobody") == []

    async def test_a_search_without_a_query_is_refused(self, agent: httpx2.AsyncClient) -> None:
        assert await refused(agent, f"{GRAPH}/search") == (400, "invalid_input")
        assert await refused(agent, f"{GRAPH}/search", q="") == (400, "invalid_input")


class TestChanges:
    async def test_polling_returns_each_change_once(self, gateway: RunningGateway, agent: httpx2.AsyncClient) -> None:
        first = await read(agent, f"{GRAPH}/changes", limit=1)
        assert ([one["revision"] for one in first["items"]], first["next_cursor"]) == ([1], "1")
        rest = await read(agent, f"{GRAPH}/changes", cursor=first["next_cursor"])
        assert ([one["revision"] for one in rest["items"]], rest["next_cursor"]) == ([2], None)
        assert (await read(agent, f"{GRAPH}/changes", after_revision=rest["last_revision"]))["items"] == []
        await gateway.call(agent, "delete_entities", {"entityNames": ["Adam"]})
        (newest,) = (await read(agent, f"{GRAPH}/changes", after_revision=2))["items"]
        assert (newest["operation"], newest["actor"][:4]) == ("delete_entities", "key:")
        beyond = await read(agent, f"{GRAPH}/changes", after_revision=50)
        assert (beyond["items"], beyond["last_revision"]) == ([], 50)


class TestConfiguring:
    async def test_given_fields_change_and_others_stay(self, agent: httpx2.AsyncClient) -> None:
        before = await read(agent, GRAPH)
        changed = await agent.patch(
            GRAPH, json={"conflict_policy": "manual", "kind_whitelist": ["person"]}, headers=ANY
        )
        assert changed.status_code == 200, changed.text
        assert (changed.json()["conflict_policy"], changed.json()["kind_whitelist"]) == ("manual", ["person"])
        changed = await agent.patch(GRAPH, json={"metadata": {"team": "blue"}}, headers=ANY)
        assert changed.json()["kind_whitelist"] == ["person"]
        changed = await agent.patch(GRAPH, json={"kind_whitelist": None}, headers=ANY)
        assert (changed.json()["kind_whitelist"], changed.json()["metadata"]) == (None, {"team": "blue"})
        after = await read(agent, GRAPH)
        assert after["revision"] == before["revision"] + 3
        assert (await agent.patch(GRAPH, json={})).json() == changed.json()
        assert (await read(agent, GRAPH))["revision"] == after["revision"]

    async def test_a_renamed_graph_keeps_its_id_and_content(self, agent: httpx2.AsyncClient) -> None:
        before = await read(agent, GRAPH)
        renamed = (await agent.patch(GRAPH, json={"name": "people"})).json()
        assert (renamed["id"], renamed["name"]) == (before["id"], "people")
        assert (await read(agent, "/v1/graphs/people"))["entities"] == 4
        assert await refused(agent, GRAPH) == (404, "graph_not_found")
        assert (await agent.patch(GRAPH, json={"name": "other"})).status_code == 404

    async def test_an_invalid_configuration_is_refused_and_changes_nothing(
        self, agent: httpx2.AsyncClient, caller: Caller, db: Database
    ) -> None:
        await agent.post("/v1/graphs/other/memories", json={"items": [{"text": "tea is hot"}]})
        before = await read(agent, GRAPH)
        for body, status, code in (
            ({"name": "other"}, 409, "graph_exists"),
            ({"name": str(uuid4())}, 400, "invalid_input"),
            ({"name": None}, 400, "invalid_input"),
            ({"name": "no spaces"}, 400, "invalid_input"),
            ({"conflict_policy": "loudest"}, 400, "invalid_input"),
            ({"colour": "blue"}, 400, "invalid_input"),
            ({"metadata": {"dedup": {"threshold": 7}}}, 400, "invalid_input"),
            ({"metadata": {"a": "x" * 100_000}}, 400, "invalid_input"),
        ):
            response = await agent.patch(GRAPH, json=body)
            assert (response.status_code, response.json()["code"]) == (status, code), response.text
        assert await read(agent, GRAPH) == before
        async with db.transaction(caller, read_only=True) as tx:
            assert (await graphs.get_graph(tx, "other")).name == "other"

    async def test_a_caller_who_may_only_read_cannot_configure(
        self, gateway: RunningGateway, agent: httpx2.AsyncClient, issue: NewApiKey, caller: Caller
    ) -> None:
        reader = await issue(caller, scopes=frozenset({Scope.MEMORY_READ}))
        async with gateway.http(reader.secret) as http:
            response = await http.patch(GRAPH, json={"name": "mine"})
            assert (response.status_code, response.json()["code"]) == (403, "scope_required")
            assert [(await http.get(GRAPH + look)).status_code for look in LOOKS] == [200] * len(LOOKS)
        blind = await issue(caller, kind="admin", scopes=frozenset({Scope.MEMORY_WRITE, Scope.TENANT_ADMIN}))
        async with gateway.http(blind.secret) as http:
            assert [(await http.get(GRAPH + look)).status_code for look in LOOKS] == [403] * len(LOOKS)


class TestAccess:
    async def test_another_tenant_finds_nothing_and_cannot_tell_the_difference(
        self, gateway: RunningGateway, agent: httpx2.AsyncClient, issue: NewApiKey, new_tenant: NewTenant
    ) -> None:
        """Ids, names and cursors of one tenant, used by another whose graph has the same name."""
        ada = (await read(agent, f"{GRAPH}/nodes/Ada"))["id"]
        own_cursor = (await read(agent, f"{GRAPH}/nodes", limit=1))["next_cursor"]
        assert (await agent.patch(GRAPH, json={"metadata": {"team": "blue"}}, headers=ANY)).is_success
        await agent.post("/v1/graphs/private/memories", json={"items": [{"text": "tea is hot"}]})
        private = (await read(agent, "/v1/graphs/private"))["id"]
        other = await issue(operator_caller(await new_tenant()), kind="admin")
        async with gateway.http(other.secret) as http:
            assert await every(http, f"{GRAPH}/nodes") == []
            assert await every(http, f"{GRAPH}/nodes", cursor=own_cursor) == []
            assert await every(http, f"{GRAPH}/search", q="Ada") == []
            assert (await read(http, f"{GRAPH}/changes"))["items"] == []
            for look in ("", "/history", "/relations"):
                answers = [
                    (await http.get(f"{GRAPH}/nodes/{i}{look}")).text.replace(str(i), "") for i in (ada, uuid4())
                ]
                assert answers[0] == answers[1]
            for look in LOOKS:
                answers = [
                    (await http.get(f"/v1/graphs/{i}{look}")).text.replace(i, "") for i in (private, str(uuid4()))
                ]
                assert answers[0] == answers[1]
                assert (await http.get(f"/v1/graphs/{private}{look}")).status_code == 404
            bodies = [await http.patch(f"/v1/graphs/{i}", json={"name": "mine"}) for i in (private, uuid4())]
            assert [body.status_code for body in bodies] == [404, 404]
        assert (await read(agent, "/v1/graphs/private"))["id"] == private

    async def test_a_confined_key_sees_its_graphs_only_and_cannot_tell_others_apart(
        self, gateway: RunningGateway, agent: httpx2.AsyncClient, issue: NewApiKey, caller: Caller
    ) -> None:
        await agent.post("/v1/graphs/open/memories", json={"items": [{"text": "coffee is hot"}]})
        open_id = UUID((await read(agent, "/v1/graphs/open"))["id"])
        confined = await issue(caller, kind="admin", graph_ids=(open_id,))
        async with gateway.http(confined.secret) as http:
            assert len(await every(http, "/v1/graphs/open/nodes")) == 1
            assert await refused(http, "/v1/graphs/open/nodes/Ada") == (404, "entity_not_found")
            for look in LOOKS:
                answers = [await http.get(f"/v1/graphs/{name}{look}") for name in ("default", "nowhere")]
                assert [answer.status_code for answer in answers] == [403, 403]
                assert answers[0].text == answers[1].text
            for name in ("default", "nowhere", "open"):
                response = await http.patch(f"/v1/graphs/{name}", json={"metadata": {}}, headers=ANY)
                assert (response.status_code, response.json()["code"]) == (403, "graph_not_allowed")

    async def test_relations_to_unreachable_graphs_are_left_out(
        self, gateway: RunningGateway, agent: httpx2.AsyncClient, issue: NewApiKey, caller: Caller
    ) -> None:
        await agent.post("/v1/graphs/open/memories", json={"items": [{"text": "hot", "about": ["Coffee"]}]})
        coffee = (await read(agent, "/v1/graphs/open/nodes/Coffee"))["id"]
        ada = (await read(agent, f"{GRAPH}/nodes/Ada"))["id"]
        edge = {"graph": "open", "from_lineage": coffee, "to_lineage": ada, "to_graph": "default", "kind": "drunk by"}
        await gateway.call(agent, "put_edge", edge, path="/mcp/x/lineage")
        (seen,) = await every(agent, f"/v1/graphs/open/nodes/{coffee}/relations")
        assert (seen["target"]["name"], seen["target"]["graph"], seen["dangling"]) == ("Ada", "default", False)
        confined = await issue(caller, graph_ids=(UUID((await read(agent, "/v1/graphs/open"))["id"]),))
        async with gateway.http(confined.secret) as http:
            assert await every(http, f"/v1/graphs/open/nodes/{coffee}/relations") == []
