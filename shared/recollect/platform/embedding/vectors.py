"""The rules that every embedder's input and output follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from recollect.platform.embedding.failure import EmbeddingFailed

Vectors = NDArray[np.float32]

TokenBits = NDArray[np.uint8]
"""What the tokens of a passage mean in it, a bit for the sign of each number: shape (tokens, dimensions / 8)."""

Tokens = TypeVar("Tokens", Vectors, TokenBits)


@dataclass(frozen=True, slots=True)
class Embedded(Generic[Tokens]):
    """What an embedder makes of texts: the vector of each, shape (texts, dimensions), and what its tokens mean in it.

    `tokens`: of each text a row a token, which is its bits in a passage, and a vector of length one in a question. No
    rows are of a blank text, and of every text where the embedder tells nothing of tokens.
    """

    vectors: Vectors
    tokens: Sequence[Tokens]


def encodable(text: str) -> str:
    """`text` without lone surrogates, which have no UTF-8 form and which tokenizers refuse."""
    return text.encode(errors="replace").decode()


def nonblank_rows(texts: Sequence[str]) -> list[int]:
    """The rows whose text is not blank."""
    return [row for row, text in enumerate(texts) if text and not text.isspace()]


def unit_length(vectors: NDArray[np.floating[Any]]) -> Vectors:
    """Each row divided by its length; a zero row stays zero. Raises EmbeddingFailed if a number is not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        raise EmbeddingFailed("answered numbers that are not finite")
    return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)
