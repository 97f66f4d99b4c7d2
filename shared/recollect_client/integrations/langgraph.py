"""Long-term memory for LangGraph: `graph.compile(store=RecollectStore(Recollect()))`."""

import asyncio
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
)

from recollect_client import Memory, RecalledMemory, Recollect
from recollect_client.integrations.scopes import MAX_TEXT, scope_tag

KIND = "langgraph"
MINUTES_PER_DAY = 1440
MAX_RANKED = 100
MAX_RANKED_TOKENS = 50_000
MAX_SCANNED = 10_000
"""Items that are looked through for the names of namespaces, at most: the newest."""

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class RecollectStore(BaseStore):
    """A store whose items are memories of one graph of Recollect, found by words and by meaning.

    An item's text is that of the fields named by `index`, else every text in its value. A new value supersedes the old
    one, which stays in history; a deleted item is deleted. `ttl` counts from the last write.
    """

    supports_ttl = True

    def __init__(self, client: Recollect) -> None:
        self.client = client

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several operations. Those that read come first, and of several writes of an item the last one counts."""
        ops = list(ops)
        results = [None if isinstance(op, PutOp) else self._read(op) for op in ops]
        for op in {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}.values():
            self._put(op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, in a thread."""
        return await asyncio.to_thread(self.batch, ops)

    def _read(self, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        if isinstance(op, GetOp):
            found = self._find(op.namespace, op.key)
            return _item(found) if found else None
        return self._search(op) if isinstance(op, SearchOp) else self._namespaces(op)

    def _find(self, namespace: tuple[str, ...], key: str) -> RecalledMemory | None:
        return next(iter(self.client.memories(tags=_item_tag(namespace, key))), None)

    def _put(self, op: PutOp) -> None:
        known = self._find(op.namespace, op.key)
        if op.value is not None:
            self._write(op, op.value, known)
        elif known:
            self.client.forget(known.id, mode="delete")

    def _write(self, op: PutOp, value: Mapping[str, Any], known: RecalledMemory | None) -> None:
        now, text = datetime.now(UTC), _text(op)
        created_at = known.metadata[KIND]["created_at"] if known else now.isoformat()
        stored = {"namespace": op.namespace, "key": op.key, "value": value, "created_at": created_at}
        self.client.remember(
            Memory(
                text=text,
                thread=_item_tag(op.namespace, op.key),  # so that equal values of two items are two memories
                at=now,
                tags=[*_prefix_tags(op.namespace), _item_tag(op.namespace, op.key)],
                ttl_days=(op.ttl or 0) / MINUTES_PER_DAY,
                metadata={KIND: stored},
                supersedes=[known.id] if known and known.text != text else [],
            )
        )

    def _search(self, op: SearchOp) -> list[SearchItem]:
        tag = scope_tag(KIND, *op.namespace_prefix)
        found = self._ranked(op.query, tag) if op.query else self.client.memories(tags=tag)
        passing = (memory for memory in found if _passes(memory.metadata[KIND]["value"], op.filter or {}))
        several = islice(passing, op.offset, op.offset + op.limit)
        return [_search_item(memory, memory.score if op.query else None) for memory in several]

    def _ranked(self, query: str, tag: str) -> Iterator[RecalledMemory]:
        return iter(self.client.recall(query, tags=tag, limit=MAX_RANKED, token_budget=MAX_RANKED_TOKENS))

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        everything = islice(self.client.memories(tags=scope_tag(KIND)), MAX_SCANNED)
        names = {tuple(memory.metadata[KIND]["namespace"]) for memory in everything}
        conditions = op.match_conditions or ()
        matching = {name[: op.max_depth] for name in names if all(_matches(each, name) for each in conditions)}
        return sorted(matching)[op.offset : op.offset + op.limit]


def _prefix_tags(namespace: tuple[str, ...]) -> list[str]:
    """A tag for the namespace, and for each that contains it."""
    return [scope_tag(KIND, *namespace[:length]) for length in range(len(namespace) + 1)]


def _item_tag(namespace: tuple[str, ...], key: str) -> str:
    return scope_tag("langgraph-item", *namespace, key)


def _text(op: PutOp) -> str:
    """What an item is found by."""
    if op.index is None:
        found = list(_texts_in(op.value))
    else:
        found = [text for path in op.index or () for text in get_text_at_path(op.value, tokenize_path(path))]
    return "\n".join(found)[:MAX_TEXT].strip() or op.key


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, str):
        yield value
    elif isinstance(value, Iterable):
        for each in value:
            yield from _texts_in(each)
    elif value is not None:
        yield str(value)


def _item(memory: RecalledMemory) -> Item:
    return Item(**_fields(memory))


def _search_item(memory: RecalledMemory, score: float | None) -> SearchItem:
    return SearchItem(**_fields(memory), score=score)


def _fields(memory: RecalledMemory) -> dict[str, Any]:
    stored = memory.metadata[KIND]
    return {**stored, "namespace": tuple(stored["namespace"]), "updated_at": memory.at}


def _passes(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    return all(_meets(value.get(name), condition) for name, condition in conditions.items())


def _meets(value: Any, condition: Any) -> bool:
    """Whether a value is the one asked for, has the fields asked for, or compares as its operators say."""
    if not isinstance(condition, Mapping):
        return bool(value == condition)
    if any(name in _OPERATORS for name in condition):
        return value is not None and all(_OPERATORS[name](value, limit) for name, limit in condition.items())
    return isinstance(value, Mapping) and _passes(value, condition)


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return len(part) == len(path) and all(asked in ("*", label) for asked, label in zip(path, part, strict=True))
