"""Embed a batch; where the embedder fails on it, find the texts that are to blame.

A batch that fails is halved, and each half again, down to single texts. Before each halving the embedder is asked for
something harmless: one that fails on that too is away, and no text is blamed.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from recollect.passages.model import FailedPassage, PendingPassage
from recollect.platform.embedding import Embedder, EmbeddingFailed, Fault, Vectors

HARMLESS = "A memory."
"""What no embedder refuses that works at all."""


@dataclass(slots=True)
class Sifted:
    """What came of a batch; passages that are in neither `ids` nor `failed` were not tried to the end.

    `stopped`: the failure of the embedder itself that ended it. `smallest`: how many texts the smallest group held that
    failed when the time was over.
    """

    ids: list[UUID] = field(default_factory=list)
    rows: list[Vectors] = field(default_factory=list)
    failed: list[FailedPassage] = field(default_factory=list)
    stopped: EmbeddingFailed | None = None
    smallest: int | None = None

    @property
    def vectors(self) -> Vectors:
        """Shape (len(ids), dimensions)."""
        return np.concatenate(self.rows) if self.rows else np.zeros((0, 0), np.float32)


async def sift(embedder: Embedder, passages: Sequence[PendingPassage], *, seconds: float) -> Sifted:
    """Embed passages, blaming those that fail alone. After `seconds` no failure is looked into any further."""
    sieve = _Sieve(embedder, time.monotonic() + seconds)
    try:
        await sieve.shake(passages)
    except EmbeddingFailed as failure:
        sieve.sifted.stopped = failure
    except _TimeOver as over:
        sieve.sifted.smallest = over.size
    return sieve.sifted


class _TimeOver(Exception):
    """There is no time to look into the failure of a group of this size."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


class _Sieve:
    def __init__(self, embedder: Embedder, gives_up: float) -> None:
        self.sifted = Sifted()
        self._embedder = embedder
        self._gives_up = gives_up

    async def shake(self, passages: Sequence[PendingPassage]) -> None:
        if not passages:
            return
        failure = await self._attempt(passages)
        if failure is None:
            return
        if failure.fault is Fault.AWAY or not await self._is_well():
            raise failure
        if len(passages) == 1:
            self.sifted.failed.append(FailedPassage(passages[0].id, failure.message, failure.fault is Fault.TEXT))
            return
        if time.monotonic() >= self._gives_up:
            raise _TimeOver(len(passages))
        half = len(passages) // 2
        await self.shake(passages[:half])
        await self.shake(passages[half:])

    async def _attempt(self, passages: Sequence[PendingPassage]) -> EmbeddingFailed | None:
        """Embed them; how it failed, if it did."""
        try:
            vectors = await self._embedder.embed([passage.text or "" for passage in passages])
        except EmbeddingFailed as failure:
            return failure
        except Exception as error:
            # An embedder in this process: the error's own text may hold what was embedded.
            return EmbeddingFailed(f"failed ({type(error).__name__})")
        self.sifted.ids += [passage.id for passage in passages]
        self.sifted.rows.append(vectors)
        return None

    async def _is_well(self) -> bool:
        try:
            await self._embedder.embed([HARMLESS])
        except Exception:
            return False
        return True
