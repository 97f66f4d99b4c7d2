"""The searches of toolset `organize`, as the enhanced memory server has them, and `batch_search` of toolset `lineage`.

Sources of truth: that server's description of its data flow (search operations), and the memgraph package's batch
search.
"""

import json
import math
from typing import Any

import pytest
from mcp import Client

from recollect.accounts.identity.model import operator_caller
from tests.conftest import NewTenant
from tests.contract.conftest import ConnectedClient
from tests.support.gateway import LEGACY, MODES, NewApiKey, answer, refused, text_of, texts_of

PATH = "/mcp/x/all"

PEOPLE = [
    ("Alice", "person", ["Engineer", "likes tea", "likes chess"], ["VIP"], 8),
    ("Bob", "person", ["likes tea"], ["friend"], 3),
    ("Teahouse", "place", ["serves green tea", "open daily"], [], None),
    ("Chess club", "group", ["meets on Monday"], ["vip"], 5),
]
KNOWS = {"from": "Alice", "to": "Bob", "relationType": "knows"}
EMPTY: dict[str, list[Any]] = {"entities": [], "relations": []}


@pytest.fixture(scope="module")
async def key_of_readers(connected: ConnectedClient, issue: NewApiKey, new_tenant: NewTenant) -> str:
    """A key of the tenant of the tests that write nothing."""
    secret = (await issue(operator_caller(await new_tenant()), kind="admin")).secret
    await create_people(await connected(secret, PATH, LEGACY))
    return secret


@pytest.fixture(params=MODES)
async def client(request: pytest.FixtureRequest, connected: ConnectedClient, key_of_readers: str) -> Client:
    """A client of a graph with these people, for tests that write nothing."""
    return await connected(key_of_readers, PATH, request.param)


@pytest.fixture(params=MODES)
async def writer(request: pytest.FixtureRequest, connected: ConnectedClient, key: str) -> Client:
    """A client of a graph with these people, for one test that writes."""
    client = await connected(key, PATH, request.param)
    await create_people(client)
    return client


async def create_people(client: Client) -> None:
    entities = [
        {"name": name, "entityType": kind, "observations": said, "tags": tags, "importance": importance}
        for name, kind, said, tags, importance in PEOPLE
    ]
    await answer(client, "create_entities", entities=entities)
    await answer(client, "create_relations", relations=[KNOWS])


def triples(graph: dict[str, Any]) -> list[dict[str, str]]:
    """The relations of an answer, without their times."""
    return [{name: relation[name] for name in KNOWS} for relation in graph["relations"]]


async def found(client: Client, tool: str, /, **arguments: Any) -> list[str]:
    return [entity["name"] for entity in (await answer(client, tool, **arguments))["entities"]]


class TestRanked:
    @pytest.mark.proves("organize: search_nodes_ranked")
    async def test_results_have_entities_scores_and_matched_fields(self, client: Client) -> None:
        result = await client.call_tool("search_nodes_ranked", {"query": "likes CHESS"})
        results = (result.structured_content or {})["results"]
        assert json.loads(text_of(result)) == results
        assert [one["entity"]["name"] for one in results] == ["Alice", "Bob", "Chess club"]
        alice, bob, club = results
        assert set(alice) == {"entity", "score", "matchedFields"}
        assert alice["entity"]["tags"] == ["vip"]
        assert alice["matchedFields"] == {"observations": ["likes tea", "likes chess"]}
        assert club["matchedFields"] == {"name": True}
        assert bob["matchedFields"] == {"observations": ["likes tea"]}

    @pytest.mark.proves("organize: search_nodes_ranked", "enhanced-server: ranked-search")
    async def test_the_score_is_the_sum_of_tf_times_idf(self, client: Client) -> None:
        """Alice: 2 of 7 words are `likes`, which 2 of 4 entities hold, and 1 is `chess`, which 2 hold."""
        results = (await answer(client, "search_nodes_ranked", query="likes chess"))["results"]
        scores = {one["entity"]["name"]: one["score"] for one in results}
        wanted = {
            "Alice": 2 / 7 * math.log(4 / 2) + 1 / 7 * math.log(4 / 2),
            "Bob": 1 / 4 * math.log(4 / 2),
            "Chess club": 1 / 6 * math.log(4 / 2),
        }
        assert scores == pytest.approx(wanted)

    @pytest.mark.proves("enhanced-server: ranked-search-filters-first")
    async def test_filters_come_before_the_documents_are_counted(self, client: Client) -> None:
        results = (await answer(client, "search_nodes_ranked", query="chess", tags=["VIP"]))["results"]
        assert {one["entity"]["name"]: one["score"] for one in results} == {"Alice": 0, "Chess club": 0}
        few = await answer(client, "search_nodes_ranked", query="likes", minImportance=3, maxImportance=4)
        assert [one["entity"]["name"] for one in few["results"]] == ["Bob"]

    async def test_a_limited_page_has_the_next_offset(self, client: Client) -> None:
        result = await client.call_tool("search_nodes_ranked", {"query": "likes chess", "limit": 2})
        assert (result.structured_content or {})["nextOffset"] == 2
        assert texts_of(result)[1:] == ["More follow: offset=2."]
        rest = await answer(client, "search_nodes_ranked", query="likes chess", limit=2, offset=2)
        assert [one["entity"]["name"] for one in rest["results"]] == ["Chess club"]
        assert "nextOffset" not in rest

    async def test_a_query_without_words_finds_nothing(self, client: Client) -> None:
        for query in ("", " ", "%", "..."):
            assert await answer(client, "search_nodes_ranked", query=query) == {"results": []}


class TestBoolean:
    @pytest.mark.proves("organize: boolean_search", "enhanced-server: boolean-search")
    async def test_a_query_finds_the_matching_entities(self, client: Client, subtests: pytest.Subtests) -> None:
        for query, names in [
            ("name:Alice AND (type:person OR observation:engineer)", ["Alice"]),
            ("type:person", ["Alice", "Bob"]),
            ("type:person NOT observation:chess", ["Bob"]),
            ("tea", ["Alice", "Bob", "Teahouse"]),
            ("NOT tea", ["Chess club"]),
            ("tag:vip", ["Alice", "Chess club"]),
            ("TAG:VIP AND NOT type:PERSON", ["Chess club"]),
            ('observation:"likes tea" OR name:"Chess club"', ["Alice", "Bob", "Chess club"]),
            ("vip", ["Alice", "Chess club"]),
            ("NOT (type:person OR type:place)", ["Chess club"]),
            ("a AND NOT a", []),
        ]:
            with subtests.test(query):
                assert await found(client, "boolean_search", query=query) == names

    @pytest.mark.proves("enhanced-server: times-of-relations", "enhanced-server: relations-of-what-is-found")
    async def test_the_result_is_a_graph(self, client: Client) -> None:
        result = await client.call_tool("boolean_search", {"query": "name:bob"})
        graph = result.structured_content or {}
        assert json.loads(text_of(result)) == graph
        [relation] = graph["relations"]
        assert relation.keys() == KNOWS.keys() | {"createdAt", "lastModified"}
        assert relation["createdAt"] == relation["lastModified"] > graph["entities"][0]["createdAt"]
        assert set(graph["entities"][0]) >= {"name", "entityType", "observations", "tags", "createdAt", "lastModified"}

    @pytest.mark.proves("enhanced-server: times-of-relations")
    async def test_a_relation_has_its_times_of_creation_and_modification(self, writer: Client) -> None:
        [before] = (await answer(writer, "boolean_search", query="name:bob"))["relations"]
        triple = {"subject": "Alice", "predicate": "knows", "object": "Bob", "metadata": {"since": 2020}}
        await answer(writer, "relate", triples=[triple])
        [after] = (await answer(writer, "boolean_search", query="name:bob"))["relations"]
        assert after["createdAt"] == before["createdAt"]
        assert after["lastModified"] > before["lastModified"]

    async def test_boolean_search_has_filters_and_pages(self, client: Client) -> None:
        assert await found(client, "boolean_search", query="tea", tags=["Friend"]) == ["Bob"]
        assert await found(client, "boolean_search", query="tea", minImportance=4) == ["Alice"]
        assert await found(client, "boolean_search", query="tea", maxImportance=4) == ["Bob"]
        first = await answer(client, "boolean_search", query="tea", limit=2)
        assert first["nextOffset"] == 2
        assert await found(client, "boolean_search", query="tea", limit=2, offset=2) == ["Teahouse"]

    @pytest.mark.proves("organize: boolean_search")
    async def test_a_syntax_error_is_reported_with_its_position(self, client: Client) -> None:
        assert await refused(client, "boolean_search", query="name:Alice AND (tea") == (
            "invalid_input",
            "query: A ) is missing at the end",
        )
        assert await refused(client, "boolean_search", query="tea OR )") == (
            "invalid_input",
            "query: Unexpected ) at character 8",
        )


class TestFuzzy:
    @pytest.mark.proves("organize: fuzzy_search", "enhanced-server: fuzzy-search")
    async def test_entities_within_the_threshold_are_found(self, client: Client, subtests: pytest.Subtests) -> None:
        cases: list[tuple[str, dict[str, Any], list[str]]] = [
            ("Alcie", {}, []),  # 1 - 2/5 = 0.6
            ("Alcie", {"threshold": 0.6}, ["Alice"]),
            ("alic", {}, ["Alice"]),
            ("persn", {}, ["Alice", "Bob"]),
            ("liked tea", {}, ["Alice", "Bob"]),
            ("Teahuose", {}, ["Teahouse"]),  # 1 - 2/8 = 0.75
            ("chess", {}, []),  # a word of a field is not the field
            ("BOB", {"threshold": 1}, ["Bob"]),
        ]
        for query, more, names in cases:
            with subtests.test(f"{query} {more}"):
                assert await found(client, "fuzzy_search", query=query, **more) == names

    @pytest.mark.proves("enhanced-server: relations-of-what-is-found")
    async def test_the_nearest_entities_come_first_with_their_relations(self, writer: Client) -> None:
        await answer(writer, "create_entities", entities=[{"name": "Bobb", "entityType": "town", "observations": []}])
        graph = await answer(writer, "fuzzy_search", query="bobb")
        assert [entity["name"] for entity in graph["entities"]] == ["Bobb", "Bob"]
        assert triples(graph) == [KNOWS]

    async def test_fuzzy_search_has_filters_and_pages(self, client: Client) -> None:
        assert await found(client, "fuzzy_search", query="persn", tags=["vip"]) == ["Alice"]
        assert await found(client, "fuzzy_search", query="persn", maxImportance=5) == ["Bob"]
        assert (await answer(client, "fuzzy_search", query="persn", limit=1))["nextOffset"] == 1
        assert await found(client, "fuzzy_search", query="persn", limit=1, offset=1) == ["Bob"]


class TestDateRange:
    @pytest.mark.proves("organize: search_by_date_range", "enhanced-server: date-range-search")
    async def test_entities_created_or_changed_in_the_range_are_found(self, client: Client) -> None:
        everyone = [name for name, *_ in PEOPLE]
        assert await found(client, "search_by_date_range") == everyone
        assert await found(client, "search_by_date_range", startDate="2000-01-01", endDate="2999-12-31") == everyone
        assert await answer(client, "search_by_date_range", endDate="2000-01-01") == EMPTY
        assert await answer(client, "search_by_date_range", startDate="2999-01-01T00:00:00Z") == EMPTY

    async def test_a_date_includes_its_whole_day(self, client: Client) -> None:
        [alice, *_] = (await answer(client, "search_by_date_range"))["entities"]
        day = alice["createdAt"][:10]
        assert "Alice" in await found(client, "search_by_date_range", startDate=day, endDate=day)

    @pytest.mark.proves("organize: search_by_date_range", "enhanced-server: date-range-search")
    async def test_date_range_search_has_filters_and_pages(self, client: Client) -> None:
        assert await found(client, "search_by_date_range", entityType="person", tags=["vip"]) == ["Alice"]
        page = await answer(client, "search_by_date_range", limit=3)
        assert page["nextOffset"] == 3
        assert triples(page) == [KNOWS]
        assert await found(client, "search_by_date_range", limit=3, offset=3) == ["Chess club"]

    async def test_an_invalid_date_is_refused(self, client: Client, subtests: pytest.Subtests) -> None:
        for date in ["yesterday", "2026-02-30", "2026-13-01T00:00:00Z", " ", "0001-01-01T00:00:00+14:00"]:
            with subtests.test(date):
                code, told = await refused(client, "search_by_date_range", endDate=date)
                assert (code, told.split(": ")[0]) == ("invalid_input", "endDate")


class TestThePast:
    async def test_every_search_reads_the_past(self, writer: Client) -> None:
        searches: list[tuple[str, dict[str, Any]]] = [
            ("search_nodes_ranked", {"query": "chess"}),
            ("boolean_search", {"query": "chess"}),
            ("fuzzy_search", {"query": "Alise"}),
            ("search_by_date_range", {}),
        ]
        then = [await answer(writer, tool, **arguments) for tool, arguments in searches]
        await answer(writer, "delete_entities", entityNames=["Alice", "Chess club", "Bob", "Teahouse"])
        for (tool, arguments), was in zip(searches, then, strict=True):
            assert await answer(writer, tool, **arguments, as_of="2") == was
            assert not any((await answer(writer, tool, **arguments)).values())


class TestBatchSearch:
    @pytest.mark.proves("lineage: batch_search", "memgraph: batch-search")
    async def test_hits_are_fused_by_rank(self, client: Client) -> None:
        queries = [{"text": "Who likes tea?"}, {"text": "Monday"}, {"text": "who meets on Monday?"}]
        batch = await answer(client, "batch_search", queries=queries)
        singles = [
            [hit["node"]["lineage_id"] for hit in (await answer(client, "search_graph", text=query["text"]))["hits"]]
            for query in queries
        ]
        assert batch["query_count"] == 3
        assert batch["per_query_hits"] == [len(single) for single in singles]
        assert batch["unique_hits"] == len({lineage for single in singles for lineage in single})
        for hit in batch["hits"]:
            ranks = {n: single.index(hit["node"]["lineage_id"]) + 1 for n, single in enumerate(singles)
                     if hit["node"]["lineage_id"] in single}  # fmt: skip
            assert hit["queries_matched"] == list(ranks)
            assert hit["score"] == pytest.approx(sum(1 / (60 + rank) for rank in ranks.values()))
        scores = [hit["score"] for hit in batch["hits"]]
        assert scores == sorted(scores, reverse=True)
        assert batch["hits"][0]["queries_matched"] == [1, 2] or batch["hits"][0]["queries_matched"] == [0, 1, 2]

    async def test_each_query_has_its_filters_and_limit(self, client: Client) -> None:
        batch = await answer(
            client,
            "batch_search",
            queries=[
                {"text": "likes tea", "limit": 1},
                {"text": "tea", "kinds": ["place"]},
                {"text": "tea", "tags": ["FRIEND"]},
            ],
        )
        assert batch["per_query_hits"] == [1, 1, 1]
        by_query = {n: hit["node"]["name"] for hit in batch["hits"] for n in hit["queries_matched"]}
        assert (by_query[1], by_query[2]) == ("Teahouse", "Bob")

    @pytest.mark.proves("lineage: batch_search")
    async def test_limits_are_clamped_to_their_bounds(self, client: Client) -> None:
        queries = [{"text": "tea", "limit": 1_000}, {"text": "tea", "limit": 0}, {"text": "tea", "limit": -5}]
        batch = await answer(client, "batch_search", queries=queries, limit=1_000)
        assert len(set(batch["per_query_hits"])) == 1
        assert len((await answer(client, "batch_search", queries=queries, limit=1))["hits"]) == 1
        assert len((await answer(client, "batch_search", queries=queries, limit=0))["hits"]) == len(batch["hits"])

    @pytest.mark.proves("memgraph: batch-search")
    async def test_one_to_eight_queries_are_accepted(self, client: Client) -> None:
        assert await refused(client, "batch_search", queries=[]) == (
            "invalid_input",
            "queries: Array must contain at least 1 element",
        )
        code, told = await refused(client, "batch_search", queries=[{"text": "tea"}] * 9)
        assert (code, told.split(": ")[0]) == ("invalid_input", "queries")
        assert (await answer(client, "batch_search", queries=[{"text": "tea"}] * 8))["query_count"] == 8
        nowhere = await answer(client, "batch_search", queries=[{"text": "tea"}], graph="nowhere")
        assert (nowhere["hits"], nowhere["per_query_hits"]) == ([], [0])
