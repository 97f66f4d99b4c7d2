"""Gives questions and new memories their vectors, before they are searched for, compared or stored."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

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
from recollect.fairness.computing import collect_yielding
from recollect.graph.passages.model import texts_to_prepare
from recollect.retrieval.recall.matching import depends_on_day, has_times
from recollect.retrieval.recall.model import Question
from recollect.retrieval.recall.prompts import part_that_counts
from recollect.retrieval.recall.question_analysis import is_first_person
from recollect.retrieval.recall.user_mentions import without_user

log = structlog.get_logger(__name__)

PREPARING_SECONDS = 0.5
"""The longest time that a write waits for the vectors of its memories, if it needs them for nothing else. After that,
they are left to the worker."""

Named = tuple[str | None, str]
"""A new memory: the name of its node, if it has one, and its text."""


@dataclass(frozen=True, slots=True)
class QuestionEncoder:
    """Gives texts their vectors. The embedder may be another server: call it before a transaction, never inside.

    `cached` caches the vectors of each tenant's questions. `previous` is the embedder that was configured before, for
    graphs that still have its vectors, and `cached_previous` caches these. While an embedder is unavailable, vectors
    are None, and search works by words alone.
    """

    embedder: Embedder
    cached: CachedEmbedder | None = None
    previous: Embedder | None = None
    cached_previous: CachedEmbedder | None = None

    async def questions(self, caller: Caller, texts: Sequence[str], *, time_zone: str | None = None) -> list[Question]:
        """Make the questions that a caller asks in a time zone (None: the graph's), with vectors from the cache.

        Of long texts, only the part that asks is embedded (`prompts.py`).
        """
        embedder = self.cached.of(caller.tenant_id) if self.cached else self.embedder
        now = datetime.now(UTC)
        parts = await collect_yielding(_asking_part(text, now, time_zone) for text in texts)
        encoded = await self._encode(embedder, caller, [part.text for part in parts])
        return [_whole(question, text, part) for question, text, part in zip(encoded, texts, parts, strict=True)]

    async def embed_new_memories(
        self, caller: Caller, texts: Sequence[str], memories: Iterable[Named] = ()
    ) -> tuple[list[Question], PreparedTexts]:
        """Make questions that find the near duplicates of these texts, and the vectors to store with `memories`.

        The vectors are not cached, since the same text is rarely embedded again.
        """
        prepared = await self._prepare([*texts, *texts_to_prepare(memories)])
        questions = [_prepared_question(text, self.embedder, prepared) for text in texts]
        return questions if self.previous is None else await self._with_previous(caller, questions), prepared

    async def prepare(self, memories: Iterable[Named]) -> PreparedTexts:
        """Make the vectors of new memories (`texts_to_prepare`).

        There are none while the embedder is unavailable, or if it takes longer than PREPARING_SECONDS.
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


class _AskingPart(NamedTuple):
    """The part of a text that asks, with the moment and the zone in which, as far as its times depend on them."""

    text: str
    asked_at: datetime | None
    time_zone: str | None


def _asking_part(text: str, now: datetime, time_zone: str | None) -> _AskingPart:
    part = part_that_counts(text)
    if not has_times(part):
        return _AskingPart(part, None, None)
    return _AskingPart(part, now if depends_on_day(part) else None, time_zone)


def _whole(question: Question, text: str, part: _AskingPart) -> Question:
    """Give a question its whole text, of which a part was embedded, and what its times depend on."""
    return replace(
        question,
        text=text,
        part=None if part.text == text else part.text,
        asked_at=part.asked_at,
        time_zone=part.time_zone,
        older=None if question.older is None else _whole(question.older, text, part),
    )


def _prepared_question(text: str, embedder: Embedder, prepared: PreparedTexts) -> Question:
    made = prepared.embedded.get(text)
    vector = made.vector if made is not None and made.vector.any() else None
    return Question(text, vector, embedder.model, similarity_thresholds=embedder.similarity_thresholds)


async def _embed(embedder: Embedder, texts: Sequence[str], asked: Sequence[str]) -> Embedded[Vectors]:
    """Embed questions: a vector for each, and one for each of its tokens. `asked`: each without mentions of the user.

    A question that mentions the user is embedded with and without the mention. It gets the mean of both vectors, and
    the tokens of the text without the mention.
    """
    if asked == list(texts):
        return await embed_questions(embedder, texts)
    distinct = list(dict.fromkeys([*texts, *asked]))
    embedded = await embed_questions(embedder, distinct)
    rows, asked_rows = ([distinct.index(text) for text in of] for of in (texts, asked))
    vectors = unit_length(embedded.vectors[rows] + embedded.vectors[asked_rows])
    return Embedded(vectors, [embedded.tokens[row] for row in asked_rows])


async def _encode_by(embedder: Embedder, caller: Caller, texts: Sequence[str]) -> list[Question]:
    read = await collect_yielding((is_first_person(text), without_user(text)) for text in texts)
    askers = [caller.subject if is_own else None for is_own, _ in read]
    try:
        embedded = await _embed(embedder, texts, [asked for _, asked in read])
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
