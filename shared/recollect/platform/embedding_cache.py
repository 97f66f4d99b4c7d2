"""Vectors of recent questions, kept in this process.

A question is asked again: by the same agent in the next turn, by others, in several phrasings of which some are alike.
Texts to be stored are not: whoever embeds those uses the embedder itself, but for the previous one's vectors of them.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from recollect.platform.embedding import Embedder, Vectors
from recollect.platform.metrics import CacheTally

MAX_CHARACTERS = 1_000
"""A longer text is no question, and is embedded each time."""

Key = tuple[str, str]
"""Model and text."""


@dataclass(slots=True)
class Recent:
    """Rows by key, the least recently used of which leave when there are too many, or too many bytes of them."""

    max_entries: int
    max_bytes: int
    rows: OrderedDict[Key, Vectors] = field(default_factory=OrderedDict)
    bytes: int = 0

    def get(self, key: Key) -> Vectors | None:
        """The row, which is now the most recently used one."""
        if key in self.rows:
            self.rows.move_to_end(key)
        return self.rows.get(key)

    def put(self, key: Key, row: Vectors) -> None:
        """Keep a row of one's own; one that is larger than all may be is let go at once."""
        self.bytes -= _size(key, self.rows.pop(key)) if key in self.rows else 0
        self.rows[key] = row
        self.bytes += _size(key, row)
        while self.rows and (len(self.rows) > self.max_entries or self.bytes > self.max_bytes):
            self.bytes -= _size(*self.rows.popitem(last=False))


class CachedEmbedder:
    """An Embedder that remembers the vectors of short texts. Equal texts that are asked at once are embedded once.

    What fails is not remembered. A caller who leaves does not take the work away from those who wait for the same.
    """

    def __init__(self, embedder: Embedder, *, max_entries: int, max_bytes: int) -> None:
        self.model, self.floors = embedder.model, embedder.floors
        self.dimensions = embedder.dimensions
        self.tally = CacheTally("embeddings")
        self.recent = Recent(max_entries, max_bytes)
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


def _size(key: Key, row: Vectors) -> int:
    return row.nbytes + sum(4 * len(part) for part in key)
