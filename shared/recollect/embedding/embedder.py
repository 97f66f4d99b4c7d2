"""The interface of embedders."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self, runtime_checkable

import numpy as np

from recollect.embedding.vectors import Embedded, TokenBits, Vectors


@dataclass(frozen=True, slots=True)
class SimilarityThresholds:
    """Cosines of question and memory that separate answers from noise; each model has a scale of its own.

    `meaning`: the lowest cosine of a memory that counts as evidence. `best`: the cosine that the best memory must reach
    where there is little lexical evidence: otherwise nothing in the graph answers the question. `best_turn`: the same
    for a turn of a thread, as talk is near to everything (None: `best`). `narrowed`: what any memory needs under a
    filter, which says where to look, and the best no more (None: `meaning`); `best_narrowed`: what the best needs there
    if the question is nearer than usual to memories in general. `words`: the share of the question's words, weighted by
    rarity, that is so much lexical evidence: the better a model separates answers from noise, the more. `worded`: the
    cosine that is needed with these words. `near`: the share of the best memory's cosine from which another one comes,
    too. `coverage`: the share of the words that makes a memory evidence whatever its cosine. `english`: how many
    numbers, the first of each vector, only English texts have; those of others begin with so many zeros. Where the
    question has them and a passage has not, its cosine counts `other_scale` times, and the share `other_language` of
    `meaning`, `best` and `near` is enough; where the question has none, the other numbers alone are compared. How much
    more a fact needs to be the best: `other_kind`, where the question asks for an amount or a time and it has none;
    `no_amount`, where it has no counterpart of the question's word of an amount, such as "many".
    """

    meaning: float
    best: float
    words: float = 0.4
    other_language: float = 1.0
    worded: float = 0.0
    near: float = 0.7
    coverage: float = 0.3
    other_scale: float = 1.0
    english: int = 0
    best_turn: float | None = None
    narrowed: float | None = None
    best_narrowed: float | None = None
    other_kind: float = 0.0
    no_amount: float = 0.0

    def under_filter(self) -> Self:
        """Those of a recall with a filter: with `narrowed`, whether or not a memory is a turn of a thread."""
        each = self.meaning if self.narrowed is None else self.narrowed
        best = each if self.best_narrowed is None else self.best_narrowed
        return replace(self, meaning=each, best=best, best_turn=best)

    def shifted(self, shift: float) -> Self:
        """With other cosines for the best memory, higher by `shift`, and none below the cosine of any memory."""
        of_turn = self.best if self.best_turn is None else self.best_turn
        best, turn = (max(self.meaning, cosine + shift) for cosine in (self.best, of_turn))
        return replace(self, best=best, best_turn=turn, best_narrowed=self.under_filter().meaning + max(0.0, shift))


UNMEASURED = SimilarityThresholds(meaning=0.25, best=0.25)
"""For models without measurements: a threshold for each memory, and the same for the best."""


class Embedder(Protocol):
    """Makes vectors of texts. `model` is stored with each vector; vectors of two models are never compared."""

    model: str
    dimensions: int
    similarity_thresholds: SimilarityThresholds

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, in order: shape (len(texts), dimensions), of length one, or zero if blank.

        Raises EmbeddingFailed (embedder_unavailable) when there is no answer in time, or an invalid one.
        """

    async def close(self) -> None:
        """Close connections."""


@runtime_checkable
class TokenEmbedder(Protocol):
    """The additional interface of an embedder that has contextual vectors of tokens, or wraps one that has.

    Tokens are content words: no marks or stop words, and a bounded number. Both methods raise as Embedder.embed.
    """

    async def embed_passages(self, texts: Sequence[str]) -> Embedded[TokenBits]:
        """The rows of `embed`, and the bits of tokens, for texts to be stored."""

    async def embed_questions(self, texts: Sequence[str]) -> Embedded[Vectors]:
        """The rows of `embed`, and the vectors of tokens, for texts to be compared with stored ones."""


@runtime_checkable
class QuestionAware(Protocol):
    """The additional interface of an embedder whose cosines have another scale for some questions, or wraps one."""

    async def thresholds_of(self, question: str, vector: Vectors | None) -> SimilarityThresholds:
        """Those for this question, whose vector may not be known. Raises as Embedder.embed."""


async def thresholds_of(embedder: Embedder, question: str, vector: Vectors | None = None) -> SimilarityThresholds:
    """The cosines that separate answers to this question from noise. Raises as Embedder.embed."""
    if isinstance(embedder, QuestionAware):
        return await embedder.thresholds_of(question, vector)
    return embedder.similarity_thresholds


async def embed_passages(embedder: Embedder, texts: Sequence[str]) -> Embedded[TokenBits]:
    """Vectors of texts to be stored, and bits of their tokens if the embedder has them. Raises as Embedder.embed."""
    if isinstance(embedder, TokenEmbedder):
        return await embedder.embed_passages(texts)
    return Embedded(await embedder.embed(texts), [np.zeros((0, 0), np.uint8)] * len(texts))


async def embed_questions(embedder: Embedder, texts: Sequence[str]) -> Embedded[Vectors]:
    """Vectors of questions, and of their tokens if the embedder has them. Raises as Embedder.embed."""
    if isinstance(embedder, TokenEmbedder):
        return await embedder.embed_questions(texts)
    return Embedded(await embedder.embed(texts), [np.zeros((0, 0), np.float32)] * len(texts))
