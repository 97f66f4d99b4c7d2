"""The second stage: how well candidates meet a question token by token, and by the days that it names.

Late interaction (ColBERT: Khattab and Zaharia, SIGIR 2020) without weights of its own: the tokens are those of the
forward pass that made the vectors. Of a passage's token the sign bits are kept, which rank nearly as its numbers do
(measured).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.graph.passages.date_phrases import LANGUAGES
from recollect.graph.passages.dates import DateRange, ToldTime
from recollect.platform.computing import Slices
from recollect.platform.embedding import Vectors

BESIDE = 0.8
"""What a token of the passage before or after counts beside one of the passage's own."""

ORDINARY_PERCENT = 80
"""A token of the question tells candidates apart by how far its best match is above the match that so many of a hundred
candidates do not reach: what all of them hold weighs next to nothing. No table of frequencies is needed."""

SHORTLY_AFTER = timedelta(days=7)
"""What was said so long after a day that a question names may tell of it still."""

BROAD_DAYS = 7
"""A passage that tells of more days than these, and than the question, tells of none of them in particular."""

_COMPARED_AT_ONCE = 8_000
"""Pairs of a token of the question and one of a passage that one slice compares, in 1 ms or so."""

_MULTIPLIED_AT_ONCE = 262_144
"""Multiplications of one matrix product, as many as OpenBLAS does in one thread: more of them wait for each other, ten
times as long on a busy machine (measured)."""

_LONGEST_QUESTION = 1_000
"""Characters of a question in which times are looked for."""


class PassageEvidence(Struct, frozen=True):
    """What is kept of a passage for the second stage, and which passages stand before and after it.

    `before` and `after` are told of candidates. `tokens`: TokenBits, row after row; None where there are none.
    """

    id: UUID
    before: UUID | None
    after: UUID | None
    tokens: bytes | None
    dates: Sequence[DateRange]


def match_windows(
    question: Vectors, candidates: Sequence[UUID], evidence: Mapping[UUID, PassageEvidence]
) -> Slices[dict[UUID, float]]:
    """How well the question's tokens, shape (n, dimensions), are met in each candidate and beside it.

    The sum over them of the best match (MaxSim), each weighted as ORDINARY_PERCENT says. Candidates without tokens are
    left out.
    """
    matches: dict[UUID, NDArray[np.float32]] = {}
    dimensions = question.shape[1]
    most = _COMPARED_AT_ONCE // len(question) * dimensions // 8
    for group in _groups([one for one in evidence.values() if one.tokens is not None], most):
        matches |= _best_matches(question, group)
        yield
    told = [evidence[passage_id] for passage_id in candidates if passage_id in matches]
    if not told:
        return {}
    nothing = np.zeros(len(question), np.float32)
    own, before, after = (
        np.array([matches.get(passage_id, nothing) if passage_id else nothing for passage_id in ids])
        for ids in zip(*((one.id, one.before, one.after) for one in told), strict=True)
    )
    windows = np.maximum(own, BESIDE * np.maximum(before, after))
    weights = windows.max(axis=0) - np.percentile(windows, ORDINARY_PERCENT, axis=0)
    scores: list[float] = (windows @ weights).tolist()
    return {one.id: score for one, score in zip(told, scores, strict=True)}


def _groups(passages: Sequence[PassageEvidence], most: int) -> Iterator[list[PassageEvidence]]:
    """The passages in groups of at most so many bytes of tokens, or of one passage."""
    group: list[PassageEvidence] = []
    size = 0
    for passage in passages:
        length = len(passage.tokens or b"")
        if group and size + length > most:
            yield group
            group, size = [], 0
        group.append(passage)
        size += length
    if group:
        yield group


def _best_matches(question: Vectors, passages: Sequence[PassageEvidence]) -> dict[UUID, NDArray[np.float32]]:
    """Of each passage the greatest cosine of each of the question's tokens with one of its own, at least 0."""
    count, dimensions = question.shape
    best = {passage.id: np.zeros(count, np.float32) for passage in passages}
    told = [(passage.id, passage.tokens) for passage in passages if passage.tokens]
    if not told:
        return best
    bits = np.frombuffer(b"".join(tokens for _, tokens in told), np.uint8).reshape(-1, dimensions // 8)
    rows = max(1, _MULTIPLIED_AT_ONCE // question.size)
    pieces = (np.unpackbits(bits[first : first + rows], axis=1) for first in range(0, len(bits), rows))
    met = np.concatenate([signs.astype(np.float32) @ question.T for signs in pieces])
    starts = np.cumsum([0, *(len(tokens) * 8 // dimensions for _, tokens in told[:-1])])
    # A bit stands for 1 or -1, and so many of these have the root of their number as their length.
    products = 2 * np.maximum.reduceat(met, starts) - question.sum(axis=1)
    cosines = np.maximum(products / math.sqrt(dimensions), 0)
    return best | dict(zip((passage_id for passage_id, _ in told), cosines, strict=True))


def named_times(question: str, asked_on: date | None) -> list[ToldTime]:
    """The times that a question names; those that it tells from the day on which it is asked, where that is known."""
    return [
        time if asked_on is None else time.resolved(asked_on)
        for time in _times_in(question)
        if time.absolute or asked_on is not None
    ]


def depends_on_day(question: str) -> bool:
    """Whether a question tells times from the day on which it is asked, as "last week" does."""
    return any(not time.absolute for time in _times_in(question))


def _times_in(question: str) -> list[ToldTime]:
    return [time for language in LANGUAGES for time in language.times_in(question[:_LONGEST_QUESTION])]


def score_dates(named: Sequence[ToldTime], at: datetime | None, told: Sequence[DateRange]) -> float:
    """1 if a passage was said, or tells of, when a question names; .5 if it was said SHORTLY_AFTER; else 0."""
    if at is None:
        return 0.0
    said, shortly_after = at.astimezone(UTC).date(), False
    for asked in (asked for time in named for asked in time.ranges(said)):
        if asked.first <= said <= asked.last or any(_tells_of(asked, days) for days in told):
            return 1.0
        shortly_after = shortly_after or timedelta() < said - asked.last <= SHORTLY_AFTER
    return 0.5 if shortly_after else 0.0


def _tells_of(asked: DateRange, told: DateRange) -> bool:
    return asked.meets(told) and told.days <= max(asked.days, BROAD_DAYS)
