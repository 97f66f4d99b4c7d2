"""What every embedder promises."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from recollect.platform.embedding.vectors import Vectors


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
