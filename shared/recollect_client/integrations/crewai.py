"""Memory for CrewAI: `Crew(…, memory=RecollectMemory(client=client))`."""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal

from crewai.memory.types import MemoryMatch, MemoryRecord, ScopeInfo
from crewai.memory.unified_memory import Memory as CrewMemory
from crewai.memory.utils import join_scope_paths
from pydantic import Field

from recollect_client import Memory, RecalledMemory, Recollect
from recollect_client.integrations.scopes import MAX_BATCH, MAX_TEXT, scope_tag

KIND = "crewai"
MAX_RANKED = 100
MAX_RANKED_TOKENS = 50_000
MAX_QUERY = 8_000
"""Characters of a question, at most."""

MOST_IMPORTANT = 10
"""Importance is from 0 to 1 in CrewAI, and from 0 to 10 in Recollect."""


class RecollectStorage:
    """CrewAI's records as memories of one graph, with a tag for each scope."""

    def __init__(self, client: Recollect) -> None:
        self.client = client

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records. What a scope has already is not stored twice."""
        for start in range(0, len(records), MAX_BATCH):
            self.client.remember([_memory(record) for record in records[start : start + MAX_BATCH]])

    def search(self, query_embedding: list[float], **_: Any) -> list[tuple[MemoryRecord, float]]:
        """Not by vectors of others: Recollect finds by text (`RecollectMemory.recall`)."""
        raise NotImplementedError("Recollect searches by text. Use RecollectMemory, not its storage alone.")

    def recall(
        self, query: str, scope_prefix: str | None, categories: list[str] | None
    ) -> list[tuple[MemoryRecord, float]]:
        """The records of a scope and of one of the categories, by words and by meaning, best first."""
        found = self.client.recall(query, tags=_scope(scope_prefix), limit=MAX_RANKED, token_budget=MAX_RANKED_TOKENS)
        records = [(_record(memory), memory.score) for memory in found]
        return [(record, score) for record, score in records if _is_of(record, categories)]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that meet every condition; returns how many."""
        ids = [
            memory.id
            for memory, record in self._stored(scope_prefix)
            if _is_of(record, categories)
            and (record_ids is None or record.id in record_ids)
            and (older_than is None or _utc(record.created_at) < _utc(older_than))
            and (metadata_filter or {}).items() <= record.metadata.items()
        ]
        for start in range(0, len(ids), MAX_BATCH):
            self.client.forget(ids[start : start + MAX_BATCH], mode="delete")
        return len(ids)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with the same id."""
        known = next(iter(self.client.memories(tags=_record_tag(record.id))), None)
        self.client.remember(_memory(record, supersedes=known))

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The record with an id."""
        found = next(iter(self.client.memories(tags=_record_tag(record_id))), None)
        return _record(found) if found else None

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """The records of a scope, newest first."""
        return list(islice(self._records(scope_prefix), offset, offset + limit))

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """What a scope holds, with those under it."""
        records = list(self._records(scope))
        times = sorted(record.created_at for record in records)
        return ScopeInfo(
            path=scope,
            record_count=len(records),
            categories=sorted({category for record in records for category in record.categories}),
            oldest_record=times[0] if times else None,
            newest_record=times[-1] if times else None,
            child_scopes=_children(scope, records),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """The scopes right under another."""
        return _children(parent, self._records(parent))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """How many records of a scope each category has."""
        counts: dict[str, int] = {}
        for record in self._records(scope_prefix):
            for category in record.categories:
                counts[category] = counts.get(category, 0) + 1
        return counts

    def count(self, scope_prefix: str | None = None) -> int:
        """How many records a scope has."""
        return sum(1 for _ in self._stored(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete every record of a scope."""
        self.delete(scope_prefix)

    async def asave(self, records: list[MemoryRecord]) -> None:
        """As `save`, in a thread."""
        await asyncio.to_thread(self.save, records)

    async def asearch(self, query_embedding: list[float], **conditions: Any) -> list[tuple[MemoryRecord, float]]:
        """As `search`."""
        return self.search(query_embedding, **conditions)

    async def adelete(self, scope_prefix: str | None = None, **conditions: Any) -> int:
        """As `delete`, in a thread."""
        return await asyncio.to_thread(self.delete, scope_prefix, **conditions)

    def _stored(self, scope_prefix: str | None) -> Iterator[tuple[RecalledMemory, MemoryRecord]]:
        return ((memory, _record(memory)) for memory in self.client.memories(tags=_scope(scope_prefix)))

    def _records(self, scope_prefix: str | None) -> Iterator[MemoryRecord]:
        return (record for _, record in self._stored(scope_prefix))


class RecollectMemory(CrewMemory):
    """CrewAI's memory in one graph of Recollect, which finds by words and by meaning itself.

    No model analyses what is stored, and no other vectors are made: a record without a scope belongs to `root_scope`,
    or to `/`. `llm` is asked only to take facts out of the results of tasks, as in each memory of CrewAI.
    """

    client: Any = Field(exclude=True, description="A Recollect client, with its graph.")

    def model_post_init(self, context: Any, /) -> None:
        """Take the client's graph as storage."""
        self.storage = RecollectStorage(self.client)
        super().model_post_init(context)

    def remember(
        self,
        content: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> MemoryRecord | None:
        """Store a content as it is; None where this memory is only read, and for a blank content."""
        records = self.remember_many(
            [content], scope, categories, metadata, importance, source, private, agent_role, root_scope
        )
        return records[0] if records else None

    def remember_many(
        self,
        contents: list[str],
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        importance: float | None = None,
        source: str | None = None,
        private: bool = False,
        agent_role: str | None = None,
        root_scope: str | None = None,
    ) -> list[MemoryRecord]:
        """Store contents as they are, at once: nothing is left to a thread, as nothing is analysed."""
        if self.read_only:
            return []
        records = [
            MemoryRecord(
                content=content[:MAX_TEXT],
                scope=join_scope_paths(self.root_scope if root_scope is None else root_scope, scope),
                categories=categories or [],
                metadata=metadata or {},
                importance=self.default_importance if importance is None else importance,
                source=source,
                private=private,
            )
            for content in contents
            if content.strip()
        ]
        self._recollect.save(records)
        return records

    def recall(
        self,
        query: str,
        scope: str | None = None,
        categories: list[str] | None = None,
        limit: int = 10,
        depth: Literal["shallow", "deep"] = "deep",
        source: str | None = None,
        include_private: bool = False,
    ) -> list[MemoryMatch]:
        """Find records by words and by meaning, best first. Both depths are the same search."""
        found = self._recollect.recall(query, join_scope_paths(self.root_scope, scope), categories)
        visible = (
            MemoryMatch(record=record, score=score, match_reasons=["recollect"])
            for record, score in found
            if include_private or not record.private or (source is not None and record.source == source)
        )
        return list(islice(visible, limit))

    @property
    def _recollect(self) -> RecollectStorage:
        assert isinstance(self.storage, RecollectStorage), "it is that of the client"
        return self.storage


def _memory(record: MemoryRecord, *, supersedes: RecalledMemory | None = None) -> Memory:
    is_other = supersedes is not None and (supersedes.text, _record(supersedes).scope) != (record.content, record.scope)
    return Memory(
        text=record.content,
        thread=_scope(record.scope),  # so that equal contents of two scopes are two records
        at=_utc(record.created_at),
        tags=[*_scopes(record.scope), _record_tag(record.id)],
        importance=record.importance * MOST_IMPORTANT,
        source=record.source,
        metadata={KIND: record.model_dump(mode="json")},
        supersedes=[supersedes.id] if supersedes and is_other else [],
    )


def _record(memory: RecalledMemory) -> MemoryRecord:
    return MemoryRecord.model_validate(memory.metadata[KIND])


def _record_tag(record_id: str) -> str:
    return f"crewai-record:{record_id}"


def _scope(path: str | None) -> str:
    return scope_tag(KIND, *_labels(path))


def _scopes(path: str) -> list[str]:
    """A tag for the scope, and for each above it."""
    labels = _labels(path)
    return [scope_tag(KIND, *labels[:length]) for length in range(len(labels) + 1)]


def _labels(path: str | None) -> list[str]:
    return [label for label in (path or "").split("/") if label]


def _children(path: str, records: Iterable[MemoryRecord]) -> list[str]:
    depth = len(_labels(path)) + 1
    return sorted(
        {"/" + "/".join(_labels(each.scope)[:depth]) for each in records if len(_labels(each.scope)) >= depth}
    )


def _is_of(record: MemoryRecord, categories: list[str] | None) -> bool:
    return not categories or not set(categories).isdisjoint(record.categories)


def _utc(time: datetime) -> datetime:
    """CrewAI's times are in UTC and do not say so."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time
