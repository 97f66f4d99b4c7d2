"""`recall` lists what passes a filter or is asked for as a whole; where nothing is found, it says what there is."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.caller import Caller
from recollect.postgres.database import Database
from recollect.settings import Settings
from recollect_gateway.mcp_endpoint.errors import ERROR_META
from tests.conftest import NewTenant
from tests.contract.test_round_trips import WHO_CALLS, name_of
from tests.support.gateway import NewApiKey, RunningGateway, issue_key, rpc_headers
from tests.support.quick_embedder import OF_WORDLLAMA
from tests.support.statements import sent_statements

PATH = "/mcp/x/agent,lineage,memory,organize"
ITEMS: list[dict[str, Any]] = [
    {"text": "Clocks are repaired at weekends", "about": ["Bob"], "kind": "Hobby", "tags": ["home"]},
    {"text": "Cats make him sneeze", "about": ["Bob"], "kind": "health", "tags": ["Medical", "home"], "importance": 8},
    {"text": "The treasurer of the rowing club", "about": ["Maria"], "thread": "club", "importance": 3},
    {"text": "The visa is due in May", "tags": ["travel", "deadline"], "importance": 9},
    {"text": "The hotel has no lift", "tags": ["travel"]},
]
TIMED = [item | {"at": f"2026-01-0{day}T12:00:00Z"} for day, item in enumerate(ITEMS, 1)]
CLOCKS, CATS, CLUB, VISA, HOTEL = [item["text"] for item in ITEMS]


@dataclass(frozen=True)
class Reader:
    """A client of one tenant: what recall answers, as structured content and as text."""

    gateway: RunningGateway
    http: httpx2.AsyncClient

    async def result(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.gateway.call(self.http, tool, arguments, path=PATH)

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.result(tool, **arguments)
        assert not result["isError"], result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    async def recalled(self, **arguments: Any) -> list[str]:
        return [memory["text"] for memory in (await self("recall", **arguments))["memories"]]

    async def text(self, **arguments: Any) -> str:
        return str((await self.result("recall", **arguments))["content"][0]["text"])

    async def refused(self, **arguments: Any) -> tuple[str, str]:
        result = await self.result("recall", **arguments)
        assert result["isError"], result
        return result["_meta"][ERROR_META]["code"], result["_meta"][ERROR_META]["path"]


@pytest.fixture(scope="module")
async def reader(
    gateway: RunningGateway, db: Database, settings: Settings, new_tenant: NewTenant
) -> AsyncIterator[Reader]:
    """A client whose graph has the items; tests of it only read."""
    key = await issue_key(db, settings, operator_caller(await new_tenant()))
    async with gateway.http(key.secret, **rpc_headers()) as http:
        reader = Reader(gateway, http)
        await reader("remember", items=TIMED)
        yield reader


@pytest.fixture
async def fresh(gateway: RunningGateway, key: str) -> AsyncIterator[Reader]:
    async with gateway.http(key, **rpc_headers()) as http:
        yield Reader(gateway, http)


@pytest.mark.proves("agent: recall")
async def test_a_filter_alone_lists_the_newest_first(reader: Reader, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"about": ["Bob"]}, [CATS, CLOCKS]),
        ({"about": ["Bob", "Maria"]}, [CLUB, CATS, CLOCKS]),
        ({"tags": ["travel"]}, [HOTEL, VISA]),
        ({"tags": ["TRAVEL", "medical"]}, [HOTEL, VISA, CATS]),
        ({"tags": ["travel", "Deadline"], "all_tags": True}, [VISA]),
        ({"tags": ["travel", "TRAVEL"], "all_tags": True}, [HOTEL, VISA]),
        ({"not_tags": ["TRAVEL", "medical"]}, [CLUB, CLOCKS]),
        ({"kinds": ["HEALTH", "hobby"]}, [CLUB, CATS, CLOCKS][1:]),
        ({"not_kinds": ["hobby"]}, [HOTEL, VISA, CLUB, CATS]),
        ({"since": "2026-01-03", "until": "2026-01-04"}, [VISA, CLUB]),
        ({"min_importance": 8}, [VISA, CATS]),
        ({"min_importance": 3, "order": "importance"}, [VISA, CATS, CLUB]),
        ({"thread": "club"}, [CLUB]),
        ({"under": "Maria"}, [CLUB]),
        ({"tags": ["home"], "kinds": ["health"]}, [CATS]),
    ]
    for filters, expected in cases:
        with subtests.test(**filters):
            assert await reader.recalled(**filters) == expected


async def test_questions_that_ask_for_everything_list(reader: Reader, subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"query": "everything"}, [HOTEL, VISA, CLUB, CATS, CLOCKS]),
        ({"query": "Summarize all memories", "limit": 2}, [HOTEL, VISA]),
        ({"query": "What are the most important things?", "limit": 3}, [VISA, CATS, CLUB]),
        ({"query": "What do you know about Bob?"}, [CATS, CLOCKS]),
        ({"query": "Maria's notes, please"}, [CLUB]),
        ({"query": "Was weißt du über Maria?"}, [CLUB]),
        ({"query": "list all memories tagged travel", "tags": ["travel"]}, [HOTEL, VISA]),
        ({"query": "Bob", "about": ["Bob"]}, [CATS, CLOCKS]),
        ({"query": "everything about Bob", "tags": ["medical"]}, [CATS]),
        ({"query": "all", "queries": ["everything"], "tags": ["travel"]}, [HOTEL, VISA]),
        ({"query": "*", "tags": ["travel"]}, [HOTEL, VISA]),
    ]
    for arguments, expected in cases:
        with subtests.test(**arguments):
            assert await reader.recalled(**arguments) == expected


async def test_other_questions_are_searched_for(reader: Reader) -> None:
    assert await reader.recalled(query="Which visa is due?") == [VISA]
    assert await reader.recalled(query="Tell me about the visa") == [VISA]
    assert await reader.recalled(query="visa", tags=["travel"]) == [VISA]
    assert await reader.recalled(query="all", queries=["visa"]) == [VISA]


async def test_a_list_comes_in_pages(reader: Reader) -> None:
    first = await reader("recall", query="everything", limit=2)
    second = await reader("recall", query="everything", limit=2, cursor=first["next_cursor"])
    third = await reader("recall", query="everything", limit=2, cursor=second["next_cursor"])
    pages = [[memory["text"] for memory in page["memories"]] for page in (first, second, third)]
    assert pages == [[HOTEL, VISA], [CLUB, CATS], [CLOCKS]]
    assert (first["more"], third["more"]) == (True, False)
    assert "next_cursor" not in third
    assert first["next_cursor"] in (await reader.text(query="everything", limit=2)).splitlines()[-1]


async def test_pages_by_importance_go_on_with_what_has_none(reader: Reader) -> None:
    found: list[str] = []
    cursor: dict[str, str] = {}
    for _ in ITEMS:
        page = await reader("recall", tags=["travel", "home"], order="importance", limit=1, **cursor)
        found += [memory["text"] for memory in page["memories"]]
        cursor = {"cursor": page.get("next_cursor") or ""}
        if not cursor["cursor"]:
            break
    assert found == [VISA, CATS, HOTEL, CLOCKS]


async def test_a_page_ends_where_the_budget_does(fresh: Reader) -> None:
    texts = [f"{name} " + "likes the sea and the hills " * 5 for name in ("Ada", "Bob", "Eve")]
    await fresh("remember", items=[{"text": text.strip(), "tags": ["x"]} for text in texts])
    first = await fresh("recall", tags=["x"], token_budget=50)
    assert (len(first["memories"]), first["more"]) == (1, True)
    rest = await fresh("recall", tags=["x"], cursor=first["next_cursor"])
    assert sorted(memory["text"] for memory in first["memories"] + rest["memories"]) == [text.strip() for text in texts]


async def test_a_new_memory_moves_no_page(fresh: Reader) -> None:
    await fresh("remember", items=TIMED)
    first = await fresh("recall", query="everything", limit=2)
    await fresh("remember", items=[{"text": "Just remembered"}])
    assert await fresh.recalled(query="everything", limit=2, cursor=first["next_cursor"]) == [CLUB, CATS]


async def test_what_cannot_be_listed_is_refused_with_its_path(reader: Reader) -> None:
    assert await reader.refused() == ("invalid_input", "query")
    assert await reader.refused(include_outdated=True, limit=3) == ("invalid_input", "query")
    assert await reader.refused(tags=["travel"], cursor="next") == ("invalid_input", "cursor")
    cursor = (await reader("recall", query="everything", limit=1))["next_cursor"]
    assert await reader.refused(query="Which visa is due?", cursor=cursor) == ("invalid_input", "cursor")
    assert await reader.refused(tags=["travel"], order="oldest") == ("invalid_input", "order")
    result = await reader.result("recall", tags=["travel"], under="Nobody")
    assert result["_meta"][ERROR_META]["code"] == "entity_not_found"


async def test_a_list_reads_the_past_and_leaves_out_what_is_outdated(fresh: Reader) -> None:
    told = (await fresh("remember", items=TIMED))["memories"]
    before = (await fresh("get_graph", graph="default"))["revision"]
    await fresh("forget", ids=[told[4]["id"]])
    await fresh("revise", id=told[3]["id"], text="The visa is due in June")
    assert await fresh.recalled(tags=["travel"]) == ["The visa is due in June"]
    assert await fresh.recalled(tags=["travel"], include_outdated=True) == [HOTEL, "The visa is due in June"]
    assert await fresh.recalled(tags=["travel"], as_of=str(before)) == [HOTEL, VISA]
    first = await fresh("recall", query="everything", limit=2, as_of=str(before))
    assert await fresh.recalled(query="everything", as_of=before, cursor=first["next_cursor"]) == [CLUB, CATS, CLOCKS]


async def test_a_memory_comes_once_and_whole_and_an_entity_by_its_name_if_nothing_is_known(fresh: Reader) -> None:
    long = " ".join(f"Room {number} of the hotel has {number} beds and a view." for number in range(60))
    await fresh("remember", items=[{"text": long, "about": ["Hotel"], "tags": ["house"]}])
    await fresh("create_entities", entities=[{"name": "Annex", "entityType": "house", "observations": []}])
    await fresh("add_tags", entityName="Annex", tags=["house"])
    assert await fresh.recalled(tags=["house"]) == [long, "Annex"]
    [part, _] = (await fresh("recall", tags=["house"], token_budget=200))["memories"]
    assert part["part"]


class TestWhatThereIs:
    """Where nothing was found, the answer says what the graph holds."""

    async def test_the_most_frequent_subjects_are_named(self, reader: Reader) -> None:
        note = "The graph holds 5 memories, most about Bob, Maria."
        answer = await reader("recall", query="platypus")
        assert (answer["memories"], answer["note"]) == ([], note)
        assert (await reader.text(tags=["nothing has it"])).splitlines()[0] == f"Nothing found. {note}"
        assert "note" not in await reader("recall", query="Which visa is due?")

    async def test_outdated_and_expired_memories_do_not_count(self, fresh: Reader) -> None:
        [memory, _] = (await fresh("remember", items=[{"text": "one", "about": ["Bob\nBobson"]}, {"text": "two"}]))[
            "memories"
        ]
        assert (await fresh("recall", query="platypus"))["note"] == "The graph holds 2 memories, most about Bob Bobson."
        await fresh("forget", ids=[memory["id"]])
        assert (await fresh("recall", query="platypus"))["note"] == "The graph holds 1 memory."

    async def test_a_graph_may_be_empty_or_not_there(self, fresh: Reader) -> None:
        assert await fresh.text(query="tea", graph="nowhere") == (
            "Nothing found. There is no such graph: the first memory makes it."
        )
        await fresh("create_graph", name="bare")
        assert await fresh.text(query="everything", graph="bare") == "Nothing found. The graph holds no memories yet."

    async def test_a_key_of_other_graphs_learns_nothing(self, fresh: Reader, issue: NewApiKey, caller: Caller) -> None:
        """Neither what a graph holds nor, beside an unknown one, that it is there."""
        await fresh("remember", items=TIMED)
        mine_id = UUID((await fresh("create_graph", name="mine"))["graph"]["id"])
        confined = await issue(caller, graph_ids=(mine_id,), default_graph_id=mine_id)
        async with fresh.gateway.http(confined.secret, **rpc_headers()) as http:
            mine = Reader(fresh.gateway, http)
            assert "Bob" not in await mine.text(query="everything")
            told = await mine.result("recall", query="everything", graph="default")
            unknown = await mine.result("recall", query="everything", graph="nowhere")
        assert told["isError"]
        assert unknown["isError"]
        assert told["_meta"] == unknown["_meta"]


async def test_search_of_openai_lists_too(reader: Reader) -> None:
    result = await reader.gateway.call(
        reader.http, "search", {"query": "What do you know about Bob?"}, path="/mcp/x/openai"
    )
    assert [found["title"] for found in result["structuredContent"]["results"]] == [f"Bob: {CATS}", f"Bob: {CLOCKS}"]


async def test_the_route_lists_as_the_tool_does(reader: Reader) -> None:
    for arguments in ({"tags": ["travel"]}, {"query": "everything", "limit": 2}, {"query": "platypus"}):
        response = await reader.http.post("/v1/graphs/default/recall", json=arguments)
        assert response.json() == await reader("recall", **arguments)


@OF_WORDLLAMA
async def test_a_list_takes_as_many_round_trips_as_a_search(reader: Reader) -> None:
    await reader("recall", query="visa")  # The gateway knows the graph from then on.
    asked: dict[str, list[str]] = {}
    calls: dict[str, dict[str, Any]] = {
        "search": {"query": "Which visa is due now?", "tags": ["travel"]},
        "list": {"tags": ["travel"]},
        "everything": {"query": "everything"},
        "about": {"query": "What do you know about Bob?"},
    }
    for name, arguments in calls.items():
        with sent_statements() as sent:
            await reader("recall", **arguments)
        asked[name] = [told for told in map(name_of, sent) if told != WHO_CALLS]
    assert {name: len(statements) for name, statements in asked.items()} == dict.fromkeys(asked, 7)
    assert "recall.list_memories" in asked["list"]
