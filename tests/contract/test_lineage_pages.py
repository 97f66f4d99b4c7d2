"""Toolset `lineage`: lists in pages, symlinks from either end, and the fields that a search covers."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.postgres.database import Database
from tests.contract.test_lineage import LineageClient
from tests.support.gateway import NewApiKey, RunningGateway, rpc_headers


@pytest.fixture
async def client(gateway: RunningGateway, key: str) -> AsyncIterator[LineageClient]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield LineageClient(gateway, http)


async def paged(client: LineageClient, tool: str, field: str, limit: int, **arguments: Any) -> list[Any]:
    """The rows of a tool, read page by page until no more follow."""
    found: list[Any] = []
    more = True
    while more:
        page = await client(tool, limit=limit, offset=len(found), **arguments)
        assert len(page[field]) <= limit
        assert page[field] or not found
        found, more = found + page[field], page["more"]
    assert found == (await client(tool, limit=50, **arguments))[field]
    return found


class TestPages:
    @pytest.mark.proves("memgraph: pages")
    @pytest.mark.parametrize("as_of", [None, "2099-01-01T00:00:00Z"])
    async def test_the_edges_of_a_node_are_listed_in_pages(self, client: LineageClient, as_of: str | None) -> None:
        hub, *others = [await client.note(f"note {n}") for n in range(6)]
        for place, other in enumerate(others):
            await client.edge(hub, other, ordinal=5 - place)
            await client.edge(other, hub)
        when = {} if as_of is None else {"as_of": as_of}
        out = await paged(client, "outgoing", "edges", 2, lineage_id=hub, **when)
        assert [edge["to_lineage"] for edge in out] == others[::-1]
        into = await paged(client, "incoming", "edges", 2, lineage_id=hub, **when)
        assert [edge["from_lineage"] for edge in into] == others

    @pytest.mark.proves("memgraph: pages")
    async def test_tags_are_listed_in_pages(self, client: LineageClient) -> None:
        for place in range(5):
            await client.note(f"note {place}", tags=[f"t{n}" for n in range(place + 1)])
        tags = await paged(client, "list_tags", "tags", 2)
        assert [tag["tag"] for tag in tags] == ["t0", "t1", "t2", "t3", "t4"]

    @pytest.mark.proves("memgraph: pages")
    async def test_the_hits_of_a_search_are_listed_in_pages(self, client: LineageClient) -> None:
        notes = {await client.note(f"Kettle {n} boils tea", summary="tea" if n % 2 else "") for n in range(7)}
        hits = await paged(client, "search_graph", "hits", 3, text="tea kettle")
        assert {hit["node"]["lineage_id"] for hit in hits} == notes
        assert len(hits) == len(notes)
        assert (await client("search_graph", text="tea kettle", offset=100)) == {
            "hits": [],
            "more": False,
            "waiting": 0,
        }


class TestSearchedFields:
    @pytest.mark.proves("memgraph: searched-fields")
    async def test_summaries_are_searched(self, client: LineageClient) -> None:
        lineage = await client.note("The keeper climbs forty steps", summary="Lighthouse duties at dusk")
        await client.note("Bees make honey", summary="apiary")
        (hit,) = (await client("search_graph", text="lighthouse duties"))["hits"]
        assert (hit["node"]["lineage_id"], hit["text"]) == (lineage, "Lighthouse duties at dusk")

    @pytest.mark.proves("memgraph: searched-fields")
    async def test_tags_are_searched(self, client: LineageClient) -> None:
        lineage = await client.note("Forty steps", tags=["topic:lighthouses", "harbour", "unrelated"])
        (hit,) = (await client("search_graph", text="harbour lighthouse"))["hits"]
        assert (hit["node"]["lineage_id"], hit["text"]) == (lineage, "topic:lighthouses, harbour")

    async def test_each_hit_has_the_best_matching_text_of_its_node(self, client: LineageClient) -> None:
        lineage = await client.note("The keeper climbs forty steps", summary="stairs", tags=["stairs"])
        (hit,) = (await client("search_graph", text="Who climbs forty steps?"))["hits"]
        assert (hit["node"]["lineage_id"], hit["text"]) == (lineage, "The keeper climbs forty steps")
        (hit,) = (await client("search_graph", text="stairs"))["hits"]
        assert hit["text"] == "stairs"

    @pytest.mark.proves("memgraph: searched-fields")
    async def test_the_hit_of_an_entity_has_its_matching_text(self, client: LineageClient) -> None:
        said = ["likes tea", "plays the violin on Sundays"]
        entity = {"name": "Alice", "entityType": "person", "observations": said, "tags": ["astronomer"]}
        await client("create_entities", entities=[entity])
        (hit,) = (await client("search_graph", text="Who plays the violin?"))["hits"]
        assert hit["text"] == said[1]
        (hit,) = (await client("search_graph", text="astronomers"))["hits"]
        assert (hit["node"]["name"], hit["text"]) == ("Alice", "astronomer")

    async def test_filters_apply_to_matches_in_summaries(self, client: LineageClient) -> None:
        await client.note("Forty steps", kind="note", summary="lighthouse", freshness_at="2020-01-01T00:00:00Z")
        asked = {"text": "lighthouse"}
        assert len((await client("search_graph", **asked, kinds=["note"]))["hits"]) == 1
        for filtered in ({"kinds": ["paper"]}, {"tags": ["any"]}, {"fresh_only": True}):
            assert (await client("search_graph", **asked, **filtered))["hits"] == []

    async def test_summaries_are_searched_as_of_a_revision(self, client: LineageClient) -> None:
        lineage = await client.note("Forty steps", summary="lighthouse")
        put = await client("put_node", lineage_id=lineage, kind="note", content="Forty steps", summary="windmill")
        assert (await client("search_graph", text="lighthouse"))["hits"] == []
        (hit,) = (await client("search_graph", text="lighthouse", as_of="1"))["hits"]
        assert (hit["node"]["version"], hit["text"]) == (1, "lighthouse")
        assert put["node"]["version"] == 2

    @pytest.mark.proves("memgraph: searched-fields")
    async def test_batch_search_searches_summaries_too(self, client: LineageClient) -> None:
        lineage = await client.note("Forty steps", summary="lighthouse")
        found = await client("batch_search", queries=[{"text": "lighthouse"}, {"text": "windmill"}])
        assert [(hit["node"]["lineage_id"], hit["queries_matched"]) for hit in found["hits"]] == [(lineage, [0])]

    async def test_quotes_and_stop_words_are_searched_safely(self, client: LineageClient) -> None:
        await client.note("Forty steps", summary="l'heure d'été \\ it's")
        for text in ("it's the", "' \\ '", "l'heure"):
            await client("search_graph", text=text)
        assert (await client("search_graph", text="l'heure d'été"))["hits"][0]["text"] == "l'heure d'été \\ it's"


class TestSymlinks:
    @pytest.mark.proves("memgraph: symlinks-into-a-graph")
    async def test_symlinks_into_a_graph_are_listed(self, client: LineageClient) -> None:
        await client("create_graph", name="far")
        near, far = await client.note("near"), await client.note("far", graph="far")
        out = await client.edge(near, far, to_graph="far")
        into = await client.edge(far, near, graph="far", to_graph="default")
        found = await client("symlink_manifest")
        assert [edge["id"] for edge in found["symlinks"]] == [out]
        assert [(one["graph"], one["count"], one["dangling"]) for one in found["targets"]] == [("far", 1, 0)]
        assert [(edge["id"], edge["graph"], edge["to_graph"]) for edge in found["inbound"]] == [
            (into, "far", "default")
        ]
        assert [(one["graph"], one["count"]) for one in found["sources"]] == [("far", 1)]
        await client("delete_edge", graph="far", id=into)
        assert (await client("symlink_manifest"))["inbound"] == []

    @pytest.mark.proves("memgraph: symlinks-into-a-graph")
    async def test_symlinks_are_listed_in_pages(self, client: LineageClient) -> None:
        await client("create_graph", name="far")
        near, far = await client.note("near"), await client.note("far", graph="far")
        edges = [await client.edge(far, near, graph="far", to_graph="default", kind=f"k{n}") for n in range(3)]
        first = await client("symlink_manifest", limit=2)
        second = await client("symlink_manifest", limit=2, offset=2)
        assert [edge["id"] for page in (first, second) for edge in page["inbound"]] == edges
        assert (first["more_inbound"], second["more_inbound"], first["more"]) == (True, False, False)

    @pytest.mark.proves("memgraph: symlinks-into-a-graph")
    async def test_a_confined_key_sees_no_symlinks_of_other_graphs(
        self, gateway: RunningGateway, client: LineageClient, issue: NewApiKey, caller: Caller, db: Database
    ) -> None:
        near = await client.note("near")
        for name in ("open", "closed"):
            await client("create_graph", name=name)
            far = await client.note(name, graph=name)
            await client.edge(near, far, to_graph=name)
            await client.edge(far, near, graph=name, to_graph="default")
        async with db.transaction(caller, read_only=True) as tx:
            ids = await graphs.graph_ids(tx, ["default", "open", "closed"])
        confined = (await issue(caller, graph_ids=(ids["default"], ids["open"]))).secret
        async with gateway.http(confined, **rpc_headers()) as http:
            found = await LineageClient(gateway, http)("symlink_manifest", limit=1)
        assert [edge["to_graph"] for edge in found["symlinks"]] == ["open"]
        assert [edge["graph"] for edge in found["inbound"]] == ["open"]
        assert (found["more"], found["more_inbound"]) == (False, False)
        assert str(UUID(str(ids["closed"]))) not in str(found)
