"""Threads: the neighbours of a memory are those before and after it in its thread or, without a thread, the other
observations of its entity. `explain` shows them: `near` is above 0 where a word of the question is within twenty words,
provided that another result is farther from it, because each term is scaled within one answer."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import pytest

from recollect.caller import Caller
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.observations import service as observations
from recollect.postgres.database import Database
from recollect.retrieval.recall.ranking_weights import WEIGHTS_WITHOUT_TOKENS as WEIGHTS
from tests.support import memories
from tests.support.gateway import RunningGateway, rpc_headers
from tests.support.quick_embedder import OF_WORDLLAMA

pytestmark = OF_WORDLLAMA

PATH = "/mcp/x/agent,facts,lineage"
WORDS = ("anvil", "bellows", "crucible", "dynamo", "engine", "furnace")


def text_of(word: str) -> str:
    """A text of thirty unique words around one: only the adjacent texts are within twenty words of it."""
    return " ".join([f"{word}filler{n}" for n in range(15)] + [word] + [f"{word}padding{n}" for n in range(14)])


@dataclass(frozen=True)
class ThreadAgent:
    """Calls tools, and embeds what they wrote, as the worker does."""

    gateway: RunningGateway
    http: httpx2.AsyncClient
    below: memories.Agent

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.gateway.call(self.http, tool, arguments, path=PATH)
        assert not result["isError"], result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    async def explained(self, word: str) -> dict[str, dict[str, float]]:
        """The memories that a word finds, by their own words, with the terms of their scores."""
        await self.below.embed()
        found = (await self("recall", query=word, limit=50, token_budget=10_000, explain=True))["memories"]
        return {memory["text"].split()[15]: memory["why"] for memory in found}

    async def beside(self, word: str) -> set[str]:
        """The words of the memories adjacent to that of this word."""
        return {other for other, why in (await self.explained(word)).items() if why["near"] > 0 and other != word}


@pytest.fixture
async def agent(gateway: RunningGateway, key: str, db: Database, caller: Caller) -> AsyncIterator[ThreadAgent]:
    async with gateway.http(key, **rpc_headers()) as http, memories.at_work(db, caller) as below:
        yield ThreadAgent(gateway, http, below)


def items(words: Sequence[str], **more: Any) -> list[dict[str, Any]]:
    return [{"text": text_of(word), **more} for word in words]


@pytest.mark.proves("agent-toolset: threads-keep-their-order")
async def test_the_memories_of_a_batch_keep_their_order(agent: ThreadAgent) -> None:
    await agent("remember", items=items(WORDS, thread="shop", at="2026-01-31T09:00:00Z"))
    for place, word in enumerate(WORDS):
        assert await agent.beside(word) == {*WORDS[max(0, place - 1) : place], *WORDS[place + 1 : place + 2]}


@pytest.mark.proves("agent-toolset: threads-keep-their-order")
@pytest.mark.parametrize("tool", ["remember", "create_node"])
async def test_at_determines_the_order_of_a_thread(agent: ThreadAgent, tool: str) -> None:
    for minute, word in ((3, "crucible"), (5, "engine"), (1, "anvil"), (4, "dynamo"), (2, "bellows")):
        if tool == "remember":
            await agent(tool, items=items([word], thread="shop", at=f"2026-01-31T09:0{minute}:00Z"))
        else:
            await agent(tool, text=text_of(word), thread="shop", at=1_769_850_000_000 + minute * 60_000)
    assert await agent.beside("anvil") == {"bellows"}
    assert await agent.beside("crucible") == {"bellows", "dynamo"}
    assert await agent.beside("engine") == {"dynamo"}


async def test_a_thread_connects_observations_of_entities_and_facts(agent: ThreadAgent) -> None:
    about: tuple[list[str], ...] = (["Grace"], [], ["Ada"], ["Grace"], [])
    for word, names in zip(WORDS, about, strict=False):
        await agent("remember", items=items([word], thread="shop", about=names))
    assert await agent.beside("crucible") == {"bellows", "dynamo"}


async def test_threads_are_separate(agent: ThreadAgent) -> None:
    await agent("remember", items=items(WORDS[:3], thread="shop") + items(WORDS[3:], thread="yard"))
    assert await agent.beside("crucible") == {"bellows"}
    assert await agent.beside("dynamo") == {"engine"}


@pytest.mark.parametrize("about", [[], ["Ada"]])
async def test_a_text_is_remembered_once_in_each_thread(agent: ThreadAgent, about: list[str]) -> None:
    said = [{"text": "likes tea", "about": about, **thread} for thread in ({"thread": "shop"}, {"thread": "yard"}, {})]
    first = (await agent("remember", items=[*said, said[0]]))["memories"]
    assert [memory["status"] for memory in first] == ["new", "new", "new", "known"]
    ids = [memory["id"] for memory in first]
    assert (len(set(ids)), ids[3]) == (3, ids[0])
    again = (await agent("remember", items=said))["memories"]
    assert [(memory["id"], memory["status"]) for memory in again] == [(memory, "known") for memory in ids[:3]]


@pytest.mark.proves("agent-toolset: context-without-a-thread")
async def test_without_a_thread_the_observations_of_an_entity_are_adjacent(agent: ThreadAgent) -> None:
    for word, name in zip(WORDS, ("Ada", "Grace") * 3, strict=True):
        await agent("remember", items=items([word], about=[name]))
    assert await agent.beside("anvil") == {"crucible"}
    assert await agent.beside("furnace") == {"dynamo"}


@pytest.mark.proves("agent-toolset: explain")
async def test_explain_returns_every_term_of_the_score(agent: ThreadAgent) -> None:
    await agent("remember", items=items(WORDS, thread="shop"))
    await agent.below.embed()
    plain = (await agent("recall", query="anvil"))["memories"]
    explained = (await agent("recall", query="anvil", explain=True))["memories"]
    assert [memory["id"] for memory in plain] == [memory["id"] for memory in explained]
    assert all("why" not in memory for memory in plain)
    for memory in explained:
        assert memory["why"].keys() == WEIGHTS.keys()
        assert all(0 <= term <= 1 for term in memory["why"].values())
        score = sum(weight * memory["why"][name] for name, weight in WEIGHTS.items()) / sum(WEIGHTS.values())
        assert memory["score"] == pytest.approx(score, abs=1e-3)


@pytest.mark.proves("facts: create_node")
async def test_a_fact_has_its_thread_and_time(agent: ThreadAgent) -> None:
    said = {"thread": "shop", "at": 1_769_850_000_000}
    made = (await agent("create_node", text="Bees make honey", **said))["node"]
    assert made.items() >= said.items()
    assert (await agent("get_node", node_id=made["id"]))["node"] == made
    assert (await agent("update_node", node_id=made["id"], text="Bees make wax"))["node"].items() >= said.items()
    [memory] = (await agent("recall", query="bees"))["memories"]
    assert (memory["text"], memory["at"]) == ("Bees make wax", "2026-01-31T09:00:00Z")


async def test_a_fact_without_thread_and_time_has_neither(agent: ThreadAgent) -> None:
    node = (await agent("create_node", text="Bees make honey"))["node"]
    assert {"thread", "at"}.isdisjoint(node)


async def test_an_empty_thread_or_source_counts_as_absent(agent: ThreadAgent) -> None:
    bare = {"thread": "", "source": ""}
    fact = await agent(
        "remember", items=[{"text": "it rained", **bare}, {"text": "it was wet", "about": ["Ada"], **bare}]
    )
    made = [
        fact["memories"][0]["node"],
        (await agent("create_node", text="the sun shone", **bare))["node"]["id"],
        (await agent("put_node", kind="note", content="the wind blew", thread=""))["node"]["lineage_id"],
        (await agent("put_subgraph", nodes=[{"kind": "note", "content": "it snowed", "thread": ""}]))["nodes"][0][
            "lineage_id"
        ],
    ]
    for node_id in made:
        assert "thread" not in (await agent("get_node", node_id=node_id))["node"]
    async with agent.below.db.transaction(agent.below.caller, read_only=True) as tx:
        view = await graphs.view(tx, None)
        (ada,) = (await naming.find_named(view, ["Ada"])).values()
        said = await observations.list_observations(tx, [ada.id])
        heads = await nodes.read_heads(tx, view.graph, [UUID(node_id) for node_id in made])
    assert [(o.thread, o.source) for o in said] == [(None, None)]
    assert [(heads[UUID(i)].thread, heads[UUID(i)].source) for i in made] == [
        (None, None),
        (None, "mcp"),
        (None, None),
        (None, None),
    ]


async def test_a_fact_is_stored_once_per_thread(agent: ThreadAgent) -> None:
    threads = (None, "shop", "yard", "shop")
    ids = [(await agent("create_node", text="it rained", thread=thread))["node"]["id"] for thread in threads]
    assert len(set(ids)) == 3
    assert ids[1] == ids[3]


async def test_a_time_before_1970_is_kept(agent: ThreadAgent) -> None:
    made = (await agent("create_node", text="Ada published her notes", at=-4_000_000_000_000))["node"]
    assert made["at"] == -4_000_000_000_000


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
async def test_the_ends_of_the_calendar_are_returned_as_times(
    agent: ThreadAgent, gateway: RunningGateway, key: str, at: str
) -> None:
    await agent("remember", items=[{"text": "the anvil rings", "at": at}])
    (found,) = (await agent("recall", query="anvil"))["memories"]
    assert found["at"][:4] == at[:4]
    assert found["at"].endswith("Z"), "a time names its zone"
    async with gateway.http(key) as http:
        out = await http.get("/v1/graphs/default/export", params={"format": "json"})
        back = await http.post("/v1/graphs/copy/import", params={"format": "json"}, json=out.json())
    assert (back.json()["facts_created"], back.json()["errors"]) == (1, [])
