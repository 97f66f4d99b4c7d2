"""Vectors of recent questions, kept in this process.

Questions repeat: the same agent asks one again in its next turn, or others do, and some of their phrasings are alike.
Texts to be stored do not repeat: they are embedded without this cache, except for their vectors by a previous model.

Each tenant has its own entries: a question that another tenant asks is embedded again, and figures about the cache
are those of the tenant that asks. Otherwise a tenant could find out, by figures or by timing, what another one asked.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from recollect.embedding import (
    Embedded,
    Embedder,
    SimilarityThresholds,
    TokenBits,
    Vectors,
    embed_passages,
    embed_questions,
    thresholds_of,
)
from recollect.telemetry.metrics import CacheTallies

MAX_CHARACTERS = 1_000
"""Longest text that is cached; a longer one is hardly a question, and is embedded each time."""

NOBODY = UUID(int=0)
"""The tenant of questions that come while no caller can be identified."""

Key = tuple[UUID, str, str]
"""Tenant, model and text."""


@dataclass(frozen=True, slots=True)
class CachedRow:
    """The vector of a text and those of its tokens, one array, and the size in bytes of it and the key."""

    row: Vectors
    size: int


class LruRows:
    """Rows by key: at most `max_entries` of each tenant, and at most `max_bytes` of all together.

    Beyond `max_entries`, a tenant loses its least recently used row. Beyond `max_bytes`, the tenant whose last use is
    longest ago loses one.
    """

    def __init__(self, max_entries: int, max_bytes: int) -> None:
        self.max_entries = max_entries
        self.max_bytes = max_bytes
        self.bytes = 0
        self._tenants: OrderedDict[UUID, OrderedDict[Key, CachedRow]] = OrderedDict()

    def size(self, tenant_id: UUID) -> int:
        """How many rows the tenant has."""
        return len(self._tenants.get(tenant_id, ()))

    def entries(self) -> dict[Key, CachedRow]:
        """All entries."""
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
        """Store a row, which nobody else may change; one larger than `max_bytes` is not stored."""
        self._drop(key)
        tenant_id, model, text = key
        entry = CachedRow(row, row.nbytes + 4 * (len(model) + len(text)))
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
    """Remembers the vectors of each tenant's short texts; `of` returns the Embedder of a tenant.

    Equal texts that a tenant asks for at once are embedded once. Failures are not remembered. When a caller leaves, the
    embedding goes on for others that wait for the same text.
    """

    def __init__(self, embedder: Embedder, *, max_entries: int, max_bytes: int) -> None:
        self.embedder = embedder
        self.tallies = CacheTallies("embeddings")
        self.recent = LruRows(max_entries, max_bytes)
        self._pending: dict[Key, asyncio.Task[dict[Key, Vectors]]] = {}

    def of(self, tenant_id: UUID) -> "TenantEmbedder":
        """The Embedder of a tenant."""
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
        for task in self._pending_tasks([key for key in dict.fromkeys(keys) if key not in rows]):
            rows |= await asyncio.shield(task)
        dimensions = self.embedder.dimensions
        vectors = np.array([rows[key][0, :dimensions] for key in keys], np.float32).reshape(len(keys), dimensions)
        return Embedded(vectors, [_tokens(rows[key]) for key in keys])

    async def close(self) -> None:
        """Cancel pending work, which nobody waits for any more, and close the embedder."""
        for task in set(self._pending.values()):
            task.cancel()
        await self.embedder.close()

    def _pending_tasks(self, keys: Sequence[Key]) -> list[asyncio.Task[dict[Key, Vectors]]]:
        """The tasks that will produce these rows: those under way, and a new one for the rest."""
        new = [key for key in keys if key not in self._pending]
        if new:
            task = asyncio.create_task(self._fetch(new))
            self._pending |= dict.fromkeys(new, task)
            task.add_done_callback(lambda done: self._store_results(new, done))
        return list(dict.fromkeys(self._pending[key] for key in keys))

    async def _fetch(self, keys: Sequence[Key]) -> dict[Key, Vectors]:
        embedded = await embed_questions(self.embedder, [text for _, _, text in keys])
        rows = zip(keys, embedded.vectors, embedded.tokens, strict=True)
        return {key: _packed(vector, tokens) for key, vector, tokens in rows}

    def _store_results(self, keys: Sequence[Key], done: asyncio.Task[dict[Key, Vectors]]) -> None:
        for key in keys:
            del self._pending[key]
        if done.cancelled() or done.exception() is not None:  # Retrieved: no caller may be left to do so.
            return
        for key, row in done.result().items():
            self.recent.put(key, row)


class TenantEmbedder:
    """The Embedder of one tenant, which uses the cache."""

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
        """See TokenEmbedder. Passages are not cached."""
        return await embed_passages(self._cache.embedder, texts)

    async def thresholds_of(self, question: str, vector: Vectors | None) -> SimilarityThresholds:
        """See QuestionAware."""
        return await thresholds_of(self._cache.embedder, question, vector)

    async def close(self) -> None:
        """See Embedder. Closes nothing: the cache closes the embedder."""


def _packed(vector: Vectors, tokens: Vectors) -> Vectors:
    """One array of a vector and those of its tokens, which may be shorter; the first row ends with their length."""
    rows = np.zeros((1 + len(tokens), len(vector) + 1), np.float32)
    rows[0, :-1], rows[0, -1] = vector, tokens.shape[1]
    rows[1:, : tokens.shape[1]] = tokens
    return rows


def _tokens(packed: Vectors) -> Vectors:
    """A copy of the vectors of the tokens."""
    return packed[1:, : int(packed[0, -1])].copy()
