"""Embedders: from texts to vectors, behind one small protocol.

Every vector has length one, so that an inner product is a cosine. The exception is a text
without a letter or digit (blank, punctuation, emoji), or of letters that the model does not know: it has no direction,
so it gets the zero vector and is similar to nothing (inner product 0).

`models/` has the models. The default is in `settings/embedding.py`; `from_settings` creates the embedder that the
settings name. `embedder` is the protocol, `cache` and `measured` wrap an embedder, `prepared` has texts that are
embedded before their transaction, `vectors` the arrays and `failure` the errors.
"""

from recollect.embedding.embedder import (
    UNMEASURED,
    Embedder,
    SimilarityThresholds,
    TokenEmbedder,
    embed_passages,
    embed_questions,
    thresholds_of,
)
from recollect.embedding.failure import EmbeddingFailed, FailureCause
from recollect.embedding.from_settings import create_embedder, create_previous_embedder
from recollect.embedding.measured import MeasuredEmbedder
from recollect.embedding.models.minilm import MiniLMEmbedder
from recollect.embedding.models.multilingual import MultilingualEmbedder
from recollect.embedding.models.openai import OpenAIEmbedder
from recollect.embedding.models.wordllama import WordLlamaEmbedder
from recollect.embedding.prepared import NOTHING_PREPARED, EmbeddedText, PreparedTexts, prepare_texts
from recollect.embedding.vectors import Embedded, TokenBits, Vectors

__all__ = [
    "NOTHING_PREPARED",
    "UNMEASURED",
    "Embedded",
    "EmbeddedText",
    "Embedder",
    "EmbeddingFailed",
    "FailureCause",
    "MeasuredEmbedder",
    "MiniLMEmbedder",
    "MultilingualEmbedder",
    "OpenAIEmbedder",
    "PreparedTexts",
    "SimilarityThresholds",
    "TokenBits",
    "TokenEmbedder",
    "Vectors",
    "WordLlamaEmbedder",
    "create_embedder",
    "create_previous_embedder",
    "embed_passages",
    "embed_questions",
    "prepare_texts",
    "thresholds_of",
]
