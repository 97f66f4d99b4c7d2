"""An embedder for every language: MiniLM and the Universal Sentence Encoder side by side in one vector.

A text that is English has both halves, of equal weight; any other has the second alone, for MiniLM knows English only.
So a question that is English is compared with English passages by both models, which finds more than either, and all
other pairs of question and passage by the second, in which languages meet. Only texts that are English have tokens. A
text in a script that neither model knows, such as Devanagari, has the zero vector, and is found by its words.
"""

import math
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import numpy as np

from recollect.embedding.embedder import SimilarityThresholds
from recollect.embedding.models.minilm import MiniLMEmbedder
from recollect.embedding.models.sentence_encoder import DIMENSIONS as _SECOND
from recollect.embedding.models.sentence_encoder import UniversalSentenceEncoder
from recollect.embedding.vectors import Embedded, Tokens, Vectors, unit_length
from recollect.words.english_detection import is_english

_FIRST = MiniLMEmbedder.dimensions

_WEIGHT, _WEIGHT_IN_QUESTIONS = 1.7, 1.1
"""The weights of the first half, where the second has 1, in the vectors of passages and of questions. The second counts
more in questions, so that passages in other languages do not stand back too far behind English ones (measured).
A passage in another language has the second half alone: its cosine with an English question is that of the second
halves, divided by the length of the question's two together."""

_NO_TOKENS = np.zeros((0, 0), np.uint8)


class MultilingualEmbedder(MiniLMEmbedder):
    """Both models in turns, as MiniLM alone (about 2 ms for a sentence, 9 ms for a passage of 80 words)."""

    model = "multilingual/minilm-l6-v2_use-v3_896"
    dimensions = _FIRST + _SECOND
    similarity_thresholds = SimilarityThresholds(
        meaning=0.2,
        best=0.245,
        best_turn=0.36,
        narrowed=0.22,
        words=0.6,
        worded=0.2,
        near=0.84,
        other_kind=0.1,
        no_amount=0.25,
        other_language=0.37,
        other_scale=math.hypot(_WEIGHT_IN_QUESTIONS, 1),
        english=_FIRST,
    )  # Measured, as the others: docs/adr/0024-every-language-in-one-vector.md, docs/lab/floors.md.
    usual_nearness = 0.191
    thresholds_of_others = SimilarityThresholds(meaning=0.03, best=0.05, words=0.6, near=0.3, english=_FIRST)
    """For questions that are not English."""
    thresholds_of_unread = SimilarityThresholds(meaning=0.03, best=0.05, coverage=0.1)
    """For questions in a script that neither model knows: words are all there is, and fewer of them are evidence."""

    def __init__(self, *, threads: int = 1) -> None:
        """Load both models: two seconds, and 250 MB of memory. `threads` and errors: as MiniLMEmbedder."""
        super().__init__(threads=threads)
        self._second = UniversalSentenceEncoder()

    async def thresholds_of(self, question: str, vector: Vectors | None) -> SimilarityThresholds:
        """See QuestionAware."""
        if is_english(question):
            return await super().thresholds_of(question, vector)
        return self.thresholds_of_others if self._second.can_read(question) else self.thresholds_of_unread

    async def embed_questions(self, texts: Sequence[str]) -> Embedded[Vectors]:
        """See TokenEmbedder. Raises EmbeddingFailed."""
        made = await super().embed_questions(texts)
        return Embedded(_for_question(made.vectors), made.tokens)

    def _embed(self, texts: list[str], encode_states: Callable[[Vectors], Tokens]) -> Embedded[Tokens]:
        english = np.array([is_english(text) for text in texts], np.bool_)
        first = super()._embed(list(compress(texts, english)), encode_states)
        halves = np.zeros((len(texts), self.dimensions), np.float32)
        halves[english, :_FIRST] = _WEIGHT * first.vectors
        readable = np.array([self._second.can_read(text) for text in texts], np.bool_)
        halves[readable, _FIRST:] = self._second.encode(list(compress(texts, readable)))
        remaining = iter(first.tokens)
        tokens: list[Any] = [next(remaining) if here else _NO_TOKENS for here in english]
        return Embedded(unit_length(halves), tokens)


def _for_question(vectors: Vectors) -> Vectors:
    """Vectors of passages as those of questions: with another weight of the first half."""
    weights = np.ones(vectors.shape[1], np.float32)
    weights[:_FIRST] = _WEIGHT_IN_QUESTIONS / _WEIGHT
    return unit_length(vectors * weights)
