"""Embed a batch, and if the embedder fails on it, find the texts that cause the failure.

A batch that fails is split in halves, and each half again, down to single texts. Before each split the embedder gets a
harmless text: if it fails on that too, it is unavailable, and no text is blamed.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np

from recollect.embedding import Embedder, EmbeddingFailed, FailureCause, Vectors, embed_passages
from recollect.graph.passages.evidence import Evidence, evidence_of
from recollect.graph.passages.model import FailedPassage, PendingPassage

HARMLESS = "A memory."
"""A text that every working embedder accepts."""


@dataclass(slots=True)
class EmbedOutcome:
    """The outcome of a batch: a vector and the evidence for each of `ids`. Passages in neither `ids` nor `failed` were
    not tried to the end.

    `aborted_by`: the failure of the embedder itself that ended the batch. `smallest_failed_group`: the size of the
    smallest group that still failed when the time was over.
    """

    ids: list[UUID] = field(default_factory=list)
    rows: list[Vectors] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    failed: list[FailedPassage] = field(default_factory=list)
    aborted_by: EmbeddingFailed | None = None
    smallest_failed_group: int | None = None

    @property
    def vectors(self) -> Vectors:
        """Shape (len(ids), dimensions)."""
        return np.concatenate(self.rows) if self.rows else np.zeros((0, 0), np.float32)

    def first(self, count: int) -> "EmbedOutcome":
        """The same with `count` vectors at most, as if the other passages had not been tried."""
        if count >= len(self.ids):
            return self
        return replace(self, ids=self.ids[:count], rows=[self.vectors[:count]], evidence=self.evidence[:count])


async def embed_bisecting(embedder: Embedder, passages: Sequence[PendingPassage], *, seconds: float) -> EmbedOutcome:
    """Embed passages and find those that fail by themselves. After `seconds` no failure is split any further."""
    bisection = _Bisection(embedder, time.monotonic() + seconds)
    try:
        await bisection.embed_or_split(passages)
    except EmbeddingFailed as failure:
        bisection.outcome.aborted_by = failure
    except _TimeOver as over:
        bisection.outcome.smallest_failed_group = over.size
    return bisection.outcome


class _TimeOver(Exception):
    """The time is over, and a group of this size still fails."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size


class _Bisection:
    def __init__(self, embedder: Embedder, deadline: float) -> None:
        self.outcome = EmbedOutcome()
        self._embedder = embedder
        self._deadline = deadline

    async def embed_or_split(self, passages: Sequence[PendingPassage]) -> None:
        if not passages:
            return
        failure = await self._attempt(passages)
        if failure is None:
            return
        if failure.cause is FailureCause.UNREACHABLE or not await self._is_available():
            raise failure
        if len(passages) == 1:
            self.outcome.failed.append(
                FailedPassage(passages[0].id, failure.message, failure.cause is FailureCause.TEXT)
            )
            return
        if time.monotonic() >= self._deadline:
            raise _TimeOver(len(passages))
        half = len(passages) // 2
        await self.embed_or_split(passages[:half])
        await self.embed_or_split(passages[half:])

    async def _attempt(self, passages: Sequence[PendingPassage]) -> EmbeddingFailed | None:
        """Embed the passages; the failure, if there was one."""
        try:
            embedded = await embed_passages(self._embedder, [passage.text or "" for passage in passages])
        except EmbeddingFailed as failure:
            return failure
        except Exception as error:
            # An embedder in this process: the error's text may hold the text that was embedded.
            return EmbeddingFailed(f"failed ({type(error).__name__})")
        evidence = await evidence_of(passages, embedded.tokens)
        self.outcome.ids += [passage.id for passage in passages]
        self.outcome.rows.append(embedded.vectors)
        self.outcome.evidence += evidence
        return None

    async def _is_available(self) -> bool:
        try:
            await self._embedder.embed([HARMLESS])
        except Exception:
            return False
        return True
