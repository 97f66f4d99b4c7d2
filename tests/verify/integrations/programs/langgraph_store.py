"""LangGraph's store: its page, and what the methods of a store promise."""

import asyncio
from typing import Any

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from page import run_page

from recollect_client import Recollect
from recollect_client.integrations.langgraph import RecollectStore


class Repeating(SimpleChatModel):
    """A model that says what it was told."""

    @property
    def _llm_type(self) -> str:
        return "repeating"

    def _call(self, messages: list[BaseMessage], *_: Any, **__: Any) -> str:
        return f"I know this: {messages[0].text}"


def test_items(store: RecollectStore) -> None:
    ada, grace = ("users", "Ada"), ("users", "ada")  # Two namespaces: case counts.
    store.put(ada, "likes", {"fact": "She drinks green tea", "strength": 3})
    store.put(grace, "likes", {"fact": "She drinks green tea", "strength": 5})
    first = store.get(ada, "likes")
    assert first
    assert (first.value, first.key, first.namespace) == ({"fact": "She drinks green tea", "strength": 3}, "likes", ada)
    store.put(ada, "likes", {"fact": "She drinks black tea", "strength": 4})
    store.put(ada, "likes", {"fact": "She drinks green tea", "strength": 5})  # as at first, but not quite
    now = store.get(ada, "likes")
    assert now
    assert (now.value["strength"], now.created_at) == (5, first.created_at)
    assert now.updated_at > first.updated_at
    assert len(store.search(ada)) == 1
    assert store.get(ada, "LIKES") is None
    store.delete(ada, "likes")
    assert store.get(ada, "likes") is None
    assert store.get(grace, "likes")


def test_searches(store: RecollectStore) -> None:
    docs = ("docs", "work")
    store.put(docs, "a", {"title": "How bees make honey", "year": 2024, "by": {"name": "Ada"}})
    store.put(docs, "b", {"title": "How wasps build nests", "year": 2026, "by": {"name": "Grace"}}, index=["title"])
    store.put((*docs, "deep"), "c", {"title": "secret bees"}, index=False)
    found = store.search(("docs",), query="honey")
    assert (found[0].key, found[0].score is not None) == ("a", True)
    assert {item.key for item in store.search(("docs",))} == {"a", "b", "c"}
    assert {item.key for item in store.search(docs, filter={"year": {"$gte": 2025}})} == {"b"}
    assert {item.key for item in store.search(docs, filter={"by": {"name": "Ada"}})} == {"a"}
    assert [item.key for item in store.search(docs, query="Grace")] == []
    assert [item.key for item in store.search(docs, query="secret")] == []
    pages = [store.search(docs, limit=2, offset=offset) for offset in (0, 2)]
    assert sorted(item.key for page in pages for item in page) == ["a", "b", "c"]
    assert store.list_namespaces(prefix=("docs",)) == [docs, (*docs, "deep")]
    assert store.list_namespaces(suffix=("*", "deep"), max_depth=1) == [("docs",)]
    assert (await_(store.aget(docs, "a"))).value["year"] == 2024


def await_(awaitable: Any) -> Any:
    """The result of a coroutine."""
    return asyncio.run(awaitable)


def test_lifetimes(store: RecollectStore) -> None:
    store.put(("notes",), "note", {"text": "It lasts"}, ttl=60)
    [found] = store.client.recall("It lasts", limit=1)
    assert store.client.node(found.node).expires_at
    store.put(("notes",), "note", {"text": "It lasts"})
    assert store.client.node(found.node).expires_at is None


if __name__ == "__main__":
    run_page(model=Repeating())
    with Recollect(graph="items") as client:
        test_items(RecollectStore(client))
        test_searches(RecollectStore(client))
        test_lifetimes(RecollectStore(client))
