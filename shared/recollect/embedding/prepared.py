"""Texts that are embedded before the transaction that stores them: no embedder is asked inside of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recollect.embedding.embedder import Embedder, embed_passages
from recollect.embedding.vectors import TokenBits, Vectors


@dataclass(frozen=True, slots=True)
class EmbeddedText:
    """The vector of a text, of shape (dimensions,), and the bits of its tokens."""

    vector: Vectors
    tokens: TokenBits


@dataclass(frozen=True, slots=True)
class PreparedTexts:
    """Texts with their vectors by one model. A text that is not among them is embedded by the worker."""

    model: str
    embedded: Mapping[str, EmbeddedText]


NOTHING_PREPARED = PreparedTexts("", {})


async def prepare_texts(embedder: Embedder, texts: Sequence[str]) -> PreparedTexts:
    """Embed texts as passages, each once. Raises as Embedder.embed."""
    distinct = list(dict.fromkeys(texts))
    made = await embed_passages(embedder, distinct)
    rows = zip(distinct, made.vectors, made.tokens, strict=True)
    return PreparedTexts(embedder.model, {text: EmbeddedText(vector, tokens) for text, vector, tokens in rows})
