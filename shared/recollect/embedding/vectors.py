"""The rules for the input and output of every embedder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.embedding.failure import EmbeddingFailed

Vectors = NDArray[np.float32]

TokenBits = NDArray[np.uint8]
"""Contextual vectors of a passage's tokens, a bit for the sign of each number: shape (tokens, dimensions / 8)."""

Tokens = TypeVar("Tokens", Vectors, TokenBits)


@dataclass(frozen=True, slots=True)
class Embedded(Generic[Tokens]):
    """The result of embedding: the vector of each text, shape (texts, dimensions), and those of its tokens in context.

    `tokens`: for each text, a row for each token: bits for a passage, a vector of length one for a question. A text
    without words has no rows. Where the embedder has no tokens, for any text or for those in the language of this one,
    there are no columns either: shape (0, 0).
    """

    vectors: Vectors
    tokens: Sequence[Tokens]


def encodable(text: str) -> str:
    """`text` without lone surrogates, which have no UTF-8 form and which tokenizers refuse."""
    return text.encode(errors="replace").decode()


def worded_rows(texts: Sequence[str]) -> list[int]:
    """The rows whose text has a letter or a digit.

    Others are blank, or of punctuation and emoji alone: most models see the same unknown token in all of these, and in
    letters that they do not know, so what they make of them is near to the wrong texts.
    """
    return [row for row, text in enumerate(texts) if any(map(str.isalnum, text))]


def unit_length(vectors: NDArray[np.floating[Any]]) -> Vectors:
    """Each row divided by its length; a zero row stays zero. Raises EmbeddingFailed if a number is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise EmbeddingFailed("answered numbers that are not finite")
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
