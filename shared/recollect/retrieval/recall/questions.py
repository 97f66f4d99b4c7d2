"""Texts with their vectors, to search for or to compare with stored memories."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import anyio
import structlog

from recollect.caller import Caller
from recollect.embedding import (
    NOTHING_PREPARED,
    Embedded,
    Embedder,
    PreparedTexts,
    Vectors,
    embed_questions,
    prepare_texts,
    thresholds_of,
)
from recollect.embedding.cache import CachedEmbedder
from recollect.embedding.vectors import unit_length
from recollect.errors import Unavailable
from recollect.fairness.computing import map_yielding
from recollect.graph.passages.model import texts_to_prepare
from recollect.retrieval.recall.matching import depends_on_day, has_times
from recollect.retrieval.recall.model import Question
from recollect.retrieval.recall.prompts import part_that_counts
from recollect.retrieval.recall.question_analysis import is_first_person
from recollect.retrieval.recall.user_mentions import without_user

log = structlog.get_logger(__name__)

PREPARING_SECONDS = 0.5
"""How long a write waits for the vectors of its memories, at most, where it needs them for nothing else. The worker
embeds them later."""

Named = tuple[str | None, str]
"""A new memory: the name of its node, if it has one, and its text."""


@dataclass(frozen=True, slots=True)
class QuestionEncoder:
    """Gives texts their vectors. The embedder may be across a network: call it before a transaction, never inside.

    `cached` caches the vectors of each tenant's questions. `previous` is the embedder of graphs that are not embedded
    anew yet, `cached_previous` the cache of its vectors. While an embedder is unavailable, the vector is None, and
    search works by words alone.
    """

    embedder: Embedder
    cached: CachedEmbedder | None = None
    previous: Embedder | None = None
    cached_previous: CachedEmbedder | None = None

    async def questions(self, caller: Caller, texts: Sequence[str], *, time_zone: str | None = None) -> list[Question]:
        """Texts to search for, by who asks in that time zone (None: the graph's); their vectors are cached.

        Of long ones, the part that counts is encoded.
        """
        embedder = self.cached.of(caller.tenant_id) if self.cached else self.embedder
        parts = await map_yielding(texts, part_that_counts)
        encoded, now = await self._encode(embedder, caller, parts), datetime.now(UTC)
        questions = [_whole(question, text) for question, text in zip(encoded, texts, strict=True)]
        return await map_yielding(questions, lambda question: _asked_at(question, now, time_zone))

    async def embed_new_memories(
        self, caller: Caller, texts: Sequence[str], memories: Iterable[Named] = ()
    ) -> tuple[list[Question], PreparedTexts]:
        """The texts as questions for their near duplicates, and the vectors of `memories` to store with them.

        The vectors are not cached, since the same text is rarely embedded again.
        """
        prepared = await self._prepare([*texts, *texts_to_prepare(memories)])
        questions = [_prepared_question(text, self.embedder, prepared) for text in texts]
        return questions if self.previous is None else await self._with_previous(caller, questions), prepared

    async def prepare(self, memories: Iterable[Named]) -> PreparedTexts:
        """The vectors of new memories (`texts_to_prepare`).

        Nothing is prepared while the embedder is unavailable, or where it takes longer than PREPARING_SECONDS.
        """
        with anyio.move_on_after(PREPARING_SECONDS):
            return await self._prepare(texts_to_prepare(memories))
        return NOTHING_PREPARED

    async def _prepare(self, texts: Sequence[str]) -> PreparedTexts:
        try:
            return await prepare_texts(self.embedder, texts) if texts else NOTHING_PREPARED
        except Unavailable as error:
            log.warning("embedding failed, storing without vectors", reason=str(error))
            return NOTHING_PREPARED

    async def _encode(self, embedder: Embedder, caller: Caller, texts: Sequence[str]) -> list[Question]:
        questions = await _encode_by(embedder, caller, texts)
        return questions if self.previous is None else await self._with_previous(caller, questions)

    async def _with_previous(self, caller: Caller, questions: Sequence[Question]) -> list[Question]:
        previous = self.cached_previous.of(caller.tenant_id) if self.cached_previous else self.previous
        assert previous is not None
        older_questions = await _encode_by(previous, caller, [question.text for question in questions])
        return [replace(question, older=older) for question, older in zip(questions, older_questions, strict=True)]


def _asked_at(question: Question, now: datetime, time_zone: str | None) -> Question:
    """The question with the moment and the zone in which it is asked, as far as its times depend on them."""
    if not has_times(question.asking_part):
        return question
    at = now if depends_on_day(question.asking_part) else None
    older = None if question.older is None else _asked_at(question.older, now, time_zone)
    return replace(question, asked_at=at, time_zone=time_zone, older=older)


def _whole(question: Question, text: str) -> Question:
    """The question with its whole text, where only a part of that was encoded."""
    if question.text == text:
        return question
    older = None if question.older is None else _whole(question.older, text)
    return replace(question, text=text, part=question.text, older=older)


def _prepared_question(text: str, embedder: Embedder, prepared: PreparedTexts) -> Question:
    made = prepared.embedded.get(text)
    vector = made.vector if made is not None and made.vector.any() else None
    return Question(text, vector, embedder.model, similarity_thresholds=embedder.similarity_thresholds)


async def _embed(embedder: Embedder, texts: Sequence[str]) -> Embedded[Vectors]:
    """The vectors of questions, and those of their tokens.

    One that mentions the user has the mean of its vector and that of what it asks besides, and the tokens of this.
    """
    asked = await map_yielding(texts, without_user)
    if asked == list(texts):
        return await embed_questions(embedder, texts)
    distinct = list(dict.fromkeys([*texts, *asked]))
    embedded = await embed_questions(embedder, distinct)
    rows, asked_rows = ([distinct.index(text) for text in of] for of in (texts, asked))
    vectors = unit_length(embedded.vectors[rows] + embedded.vectors[asked_rows])
    return Embedded(vectors, [embedded.tokens[row] for row in asked_rows])


async def _encode_by(embedder: Embedder, caller: Caller, texts: Sequence[str]) -> list[Question]:
    askers = await map_yielding(texts, lambda text: caller.subject if is_first_person(text) else None)
    try:
        embedded = await _embed(embedder, texts)
        # A text without words has the zero vector, which has no direction and no cosine.
        vectors = [vector if vector.any() else None for vector in embedded.vectors]
        thresholds = [await thresholds_of(embedder, *each) for each in zip(texts, vectors, strict=True)]
    except Unavailable as error:
        log.warning("embedding failed, searching without vectors", reason=str(error))
        return [
            Question(text, None, embedder.model, asker, await thresholds_of(embedder, text))
            for text, asker in zip(texts, askers, strict=True)
        ]
    return [
        Question(text, vector, embedder.model, asker, of_text, tokens=tokens if len(tokens) else None)
        for text, vector, asker, of_text, tokens in zip(
            texts, vectors, askers, thresholds, embedded.tokens, strict=True
        )
    ]
