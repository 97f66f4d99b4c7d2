"""Vectors of recent questions, kept in this process.

A question is asked again: by the same agent in the next turn, by others, in several phrasings of which some are alike.
Texts to be stored are not: whoever embeds those uses the embedder itself, but for the previous one's vectors of them.

A tenant's questions are its own: asked again by another, they are embedded again, and what is told of the cache tells
of the tenant that asks. Otherwise a question that another tenant asked could be found out, by figures or by time.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from recollect.platform.embedding import Embedded, Embedder, TokenBits, Vectors, embed_passages, embed_questions
from recollect.platform.metrics import CacheTallies

MAX_CHARACTERS = 1_000
"""A longer text is no question, and is embedded each time."""

NOBODY = UUID(int=0)
"""In the place of a tenant: whoever asks while nobody can be known."""

Key = tuple[UUID, str, str]
"""Tenant, model and text."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept of a text, its vector and those of its tokens, and how many bytes it takes together with its key."""

    row: Vectors
    size: int


class LruRows:
    """Rows by key: of each tenant at most `max_entries`, of all together at most `max_bytes`.

    A tenant with too many loses its own least recently used one. Where all are too large, the tenant loses one that
    was there least recently.
    """

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.bytes = 0
        self._tenants: OrderedDict[UUID, OrderedDict[Key, Entry]] = OrderedDict()

    def size(self, tenant_id: UUID) -> int:
        """How many rows the tenant has."""
        return len(self._tenants.get(tenant_id, ()))

    def entries(self) -> dict[Key, Entry]:
        """All that is kept."""
        return {key: entry for rows in self._tenants.values() for key, entry in rows.items()}

    def get(self, key: Key) -> Vectors | None:
        """The row, which is now the most recently used one."""
        rows = self._tenants.get(key[0])
        if rows is None or key not in rows:
            return None
        self._tenants.move_to_end(key[0])
        rows.move_to_end(key)
        return rows[key].row

    def put(self, key: Key, row: Vectors) -> None:
        """Keep a row of one's own; one that is larger than all may be is not kept."""
        self._drop(key)
        tenant_id, model, text = key
        entry = Entry(row, row.nbytes + 4 * (len(model) + len(text)))
        if entry.size > self.max_bytes:
            return
        rows = self._tenants.setdefault(tenant_id, OrderedDict())
        rows[key] = entry
        self.bytes += entry.size
        self._tenants.move_to_end(tenant_id)
        if len(rows) > self.max_entries:
            self._drop(next(iter(rows)))
        while self.bytes > self.max_bytes:
            self._drop(next(iter(next(iter(self._tenants.values())))))

    def _drop(self, key: Key) -> None:
        rows = self._tenants.get(key[0], OrderedDict())
        entry = rows.pop(key, None)
        if entry is not None:
            self.bytes -= entry.size
            if not rows:
                del self._tenants[key[0]]


class CachedEmbedder:
    """Remembers the vectors of a tenant's short texts; `of` gives the Embedder of one.

    Equal texts that a tenant asks for at once are embedded once. What fails is not remembered. A caller who leaves does
    not take the work away from those who wait for the same.
    """

    def __init__(self, embedder: Embedder, *, max_entries: int, max_bytes: int) -> None:
        self.embedder = embedder
        self.tallies = CacheTallies("embeddings")
        self.recent = LruRows(max_entries, max_bytes)
        self._coming: dict[Key, asyncio.Task[dict[Key, Vectors]]] = {}

    def of(self, tenant_id: UUID) -> "TenantEmbedder":
        """The tenant's."""
        return TenantEmbedder(self, tenant_id)

    async def embed(self, tenant_id: UUID, texts: Sequence[str]) -> Vectors:
        """See Embedder. The rows are the caller's own."""
        return (await self.embed_questions(tenant_id, texts)).vectors

    async def embed_questions(self, tenant_id: UUID, texts: Sequence[str]) -> Embedded[Vectors]:
        """See TokenEmbedder. The rows are the caller's own."""
        if any(len(text) > MAX_CHARACTERS for text in texts):
            return await embed_questions(self.embedder, texts)
        keys = [(tenant_id, self.embedder.model, text) for text in texts]
        rows = {key: row for key in dict.fromkeys(keys) if (row := self.recent.get(key)) is not None}
        self.tallies.count(tenant_id, hits=len(rows), misses=len(set(keys)) - len(rows))
        for coming in self._awaited([key for key in dict.fromkeys(keys) if key not in rows]):
            rows |= await asyncio.shield(coming)
        vectors = np.array([rows[key][0] for key in keys], np.float32).reshape(len(keys), self.embedder.dimensions)
        return Embedded(vectors, [rows[key][1:].copy() for key in keys])

    async def close(self) -> None:
        """End what nobody waits for any more, and close the embedder."""
        for coming in set(self._coming.values()):
            coming.cancel()
        await self.embedder.close()

    def _awaited(self, keys: Sequence[Key]) -> list[asyncio.Task[dict[Key, Vectors]]]:
        """The work that will bring these rows: what is under way, and one new task for the rest."""
        new = [key for key in keys if key not in self._coming]
        if new:
            task = asyncio.create_task(self._fetch(new))
            self._coming |= dict.fromkeys(new, task)
            task.add_done_callback(lambda done: self._arrived(new, done))
        return list(dict.fromkeys(self._coming[key] for key in keys))

    async def _fetch(self, keys: Sequence[Key]) -> dict[Key, Vectors]:
        embedded = await embed_questions(self.embedder, [text for _, _, text in keys])
        rows = zip(keys, embedded.vectors, embedded.tokens, strict=True)
        return {key: np.vstack([vector, tokens]) for key, vector, tokens in rows}

    def _arrived(self, keys: Sequence[Key], done: asyncio.Task[dict[Key, Vectors]]) -> None:
        for key in keys:
            del self._coming[key]
        if done.cancelled() or done.exception() is not None:  # Asked for, so that nobody has to be left to hear of it.
            return
        for key, row in done.result().items():
            self.recent.put(key, row)


class TenantEmbedder:
    """The Embedder of one tenant, which remembers what it asked."""

    def __init__(self, cache: CachedEmbedder, tenant_id: UUID) -> None:
        inner = cache.embedder
        self.model, self.dimensions = inner.model, inner.dimensions
        self.similarity_thresholds = inner.similarity_thresholds
        self._cache = cache
        self._tenant_id = tenant_id

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See Embedder. The rows are the caller's own."""
        return await self._cache.embed(self._tenant_id, texts)

    async def embed_questions(self, texts: Sequence[str]) -> Embedded[Vectors]:
        """See TokenEmbedder. The rows are the caller's own."""
        return await self._cache.embed_questions(self._tenant_id, texts)

    async def embed_passages(self, texts: Sequence[str]) -> Embedded[TokenBits]:
        """See TokenEmbedder. What is to be kept is not remembered here."""
        return await embed_passages(self._cache.embedder, texts)

    async def close(self) -> None:
        """See Embedder: closing is the cache's affair."""
