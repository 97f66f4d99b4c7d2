"""Texts with their vectors, to ask for or to compare with what is stored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog

from recollect.caller import Caller
from recollect.errors import Unavailable
from recollect.platform.computing import each
from recollect.platform.embedding import Embedder, embed_questions
from recollect.platform.embedding_cache import CachedEmbedder
from recollect.retrieval.recall.matching import depends_on_day
from recollect.retrieval.recall.model import Question
from recollect.retrieval.recall.question_analysis import is_first_person

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class QuestionEncoder:
    """Gives texts their vectors. The embedder may be across a network: call it before a transaction, never inside.

    `cached` remembers the vectors of each tenant's questions. `previous` is the model of graphs that are not embedded
    anew yet, `cached_previous` what remembers its vectors. While an embedder is away, the vector is None: words alone
    must do.
    """

    embedder: Embedder
    cached: CachedEmbedder | None = None
    previous: Embedder | None = None
    cached_previous: CachedEmbedder | None = None

    async def questions(self, caller: Caller, texts: Sequence[str]) -> list[Question]:
        """Texts to ask for, whose vectors are remembered for the next time."""
        embedder = self.cached.of(caller.tenant_id) if self.cached else self.embedder
        questions, today = await self._encode(embedder, caller, texts), datetime.now(UTC).date()
        return await each(questions, lambda asked: asked.on(today) if depends_on_day(asked.text) else asked)

    async def statements(self, caller: Caller, texts: Sequence[str]) -> list[Question]:
        """Texts to store, which nobody asks for again in the same words."""
        return await self._encode(self.embedder, caller, texts)

    async def _encode(self, embedder: Embedder, caller: Caller, texts: Sequence[str]) -> list[Question]:
        questions = await _encode_by(embedder, caller, texts)
        if self.previous is None:
            return questions
        previous = self.cached_previous.of(caller.tenant_id) if self.cached_previous else self.previous
        older = await _encode_by(previous, caller, texts)
        return [replace(question, older=other) for question, other in zip(questions, older, strict=True)]


async def _encode_by(embedder: Embedder, caller: Caller, texts: Sequence[str]) -> list[Question]:
    askers = await each(texts, lambda text: caller.subject if is_first_person(text) else None)
    try:
        embedded = await embed_questions(embedder, texts)
    except Unavailable as error:
        log.warning("going on without vectors", reason=str(error))
        return [
            Question(text, None, embedder.model, asker, embedder.similarity_thresholds)
            for text, asker in zip(texts, askers, strict=True)
        ]
    # The zero vector of a text without words has no direction: it is near to nothing.
    return [
        Question(
            text,
            vector if vector.any() else None,
            embedder.model,
            asker,
            embedder.similarity_thresholds,
            tokens=tokens if len(tokens) else None,
        )
        for text, asker, vector, tokens in zip(texts, askers, embedded.vectors, embedded.tokens, strict=True)
    ]
