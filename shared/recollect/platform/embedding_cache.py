"""Vectors of recent questions, kept in this process.

A question is asked again: by the same agent in the next turn, by others, in several phrasings of which some are alike.
Texts to be stored are not: whoever embeds those uses the embedder itself, but for the previous one's vectors of them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from cachetools import LRUCache

from recollect.platform.embedding import Embedder, Vectors
from recollect.platform.metrics import CacheTally

MAX_CHARACTERS = 1_000
"""A longer text is no question, and is embedded each time."""

Key = tuple[str, str]
"""Model and text."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row, and how many bytes it takes together with its key."""

    row: Vectors
    size: int


class LruRows:
    """Rows by key, the least recently used of which leave when there are too many, or too many bytes of them."""

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self.max_entries = max_entries
        self.rows: LRUCache[Key, Entry] = LRUCache(max_bytes, getsizeof=lambda entry: entry.size)

    @property
    def bytes(self) -> int:
        """What all rows and keys take."""
        return int(self.rows.currsize)

    def get(self, key: Key) -> Vectors | None:
        """The row, which is now the most recently used one."""
        entry = self.rows.get(key)
        return None if entry is None else entry.row

    def put(self, key: Key, row: Vectors) -> None:
        """Keep a row of one's own; one that is larger than all may be is not kept."""
        entry = Entry(row, row.nbytes + sum(4 * len(part) for part in key))
        if entry.size > self.rows.maxsize:
            self.rows.pop(key, None)
            return
        self.rows[key] = entry
        if len(self.rows) > self.max_entries:
            self.rows.popitem()


class CachedEmbedder:
    """An Embedder that remembers the vectors of short texts. Equal texts that are asked at once are embedded once.

    What fails is not remembered. A caller who leaves does not take the work away from those who wait for the same.
    """

    def __init__(self, embedder: Embedder, *, max_entries: int, max_bytes: int) -> None:
        self.model, self.similarity_thresholds = embedder.model, embedder.similarity_thresholds
        self.dimensions = embedder.dimensions
        self.tally = CacheTally("embeddings")
        self.recent = LruRows(max_entries, max_bytes)
        self._embedder = embedder
        self._coming: dict[Key, asyncio.Task[dict[Key, Vectors]]] = {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. The rows are the caller's own."""
        if any(len(text) > MAX_CHARACTERS for text in texts):
            return await self._embedder.embed(texts)
        keys = [(self.model, text) for text in texts]
        rows = {key: row for key in dict.fromkeys(keys) if (row := self.recent.get(key)) is not None}
        self.tally.count(hits=len(rows), misses=len(set(keys)) - len(rows))
        for coming in self._awaited([key for key in dict.fromkeys(keys) if key not in rows]):
            rows |= await asyncio.shield(coming)
        return np.array([rows[key] for key in keys], np.float32).reshape(len(keys), self.dimensions)

    async def close(self) -> None:
        """End what nobody waits for any more, and close the embedder."""
        for coming in set(self._coming.values()):
            coming.cancel()
        await self._embedder.close()

    def _awaited(self, keys: Sequence[Key]) -> list[asyncio.Task[dict[Key, Vectors]]]:
        """The work that will bring these rows: what is under way, and one new task for the rest."""
        new = [key for key in keys if key not in self._coming]
        if new:
            task = asyncio.create_task(self._fetch(new))
            self._coming |= dict.fromkeys(new, task)
            task.add_done_callback(lambda done: self._arrived(new, done))
        return list(dict.fromkeys(self._coming[key] for key in keys))

    async def _fetch(self, keys: Sequence[Key]) -> dict[Key, Vectors]:
        vectors = await self._embedder.embed([text for _, text in keys])
        return {key: row.copy() for key, row in zip(keys, vectors, strict=True)}

    def _arrived(self, keys: Sequence[Key], done: asyncio.Task[dict[Key, Vectors]]) -> None:
        for key in keys:
            del self._coming[key]
        if done.cancelled() or done.exception() is not None:  # Asked for, so that nobody has to be left to hear of it.
            return
        for key, row in done.result().items():
            self.recent.put(key, row)
