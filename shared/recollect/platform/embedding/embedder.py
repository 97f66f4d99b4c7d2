"""What every embedder promises."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from recollect.platform.embedding.vectors import Embedded, TokenBits, Vectors


@dataclass(frozen=True, slots=True)
class SimilarityThresholds:
    """Cosines of question and memory that tell an answer from noise; each model has a scale of its own.

    `meaning`: from which a memory is evidence. `best`: that the best of them must reach where words say little either:
    else nothing in the graph is about what was asked.
    """

    meaning: float
    best: float


UNMEASURED = SimilarityThresholds(meaning=0.25, best=0.25)
"""For models that we have no measurements of: a floor for each memory, and none beyond it for the best."""


class Embedder(Protocol):
    """Makes vectors of texts. `model` is stored beside each vector; vectors of two models never compare."""

    model: str
    dimensions: int
    similarity_thresholds: SimilarityThresholds

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, in order: shape (len(texts), dimensions), of length one, or zero if blank.

        Raises EmbeddingFailed (embedder_unavailable) when there is no answer in time, or one that makes no sense.
        """

    async def close(self) -> None:
        """Give back connections."""


@runtime_checkable
class TokenEmbedder(Protocol):
    """What an embedder offers beside if it can tell what each token of a text means there, or asks one that can.

    Tokens are those that are neither marks nor stop words: the first, a bounded number. Both raise as Embedder.embed.
    """

    async def embed_passages(self, texts: Sequence[str]) -> Embedded[TokenBits]:
        """The rows of `embed`, and the bits of tokens, for texts that are to be kept."""

    async def embed_questions(self, texts: Sequence[str]) -> Embedded[Vectors]:
        """The rows of `embed`, and the vectors of tokens, for texts that are to be compared with what is kept."""


async def embed_passages(embedder: Embedder, texts: Sequence[str]) -> Embedded[TokenBits]:
    """Vectors of texts that are to be kept, and the bits of their tokens if it has any. Raises as Embedder.embed."""
    if isinstance(embedder, TokenEmbedder):
        return await embedder.embed_passages(texts)
    return Embedded(await embedder.embed(texts), [np.zeros((0, 0), np.uint8)] * len(texts))


async def embed_questions(embedder: Embedder, texts: Sequence[str]) -> Embedded[Vectors]:
    """Vectors of questions, and of their tokens if it has any. Raises as Embedder.embed."""
    if isinstance(embedder, TokenEmbedder):
        return await embedder.embed_questions(texts)
    return Embedded(await embedder.embed(texts), [np.zeros((0, embedder.dimensions), np.float32)] * len(texts))
