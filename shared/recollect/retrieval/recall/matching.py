"""The second stage: how well candidates match a question token by token, and by the days that it names.

Late interaction (ColBERT: Khattab and Zaharia, SIGIR 2020) without weights of its own: the tokens are those of the
forward pass that made the vectors. Only the sign bits of a passage's tokens are stored, which rank nearly as well as
the numbers (measured).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple
from uuid import UUID

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recollect.embedding import Vectors
from recollect.fairness.computing import Slices
from recollect.text.unicode_forms import normalize
from recollect.times import in_zone, with_offset
from recollect.words.dates.day_numbers import BROAD_DAYS
from recollect.words.dates.phrase_tables import LANGUAGES
from recollect.words.dates.phrases import TimePhrase, times_in
from recollect.words.dates.ranges import DateRange

NEIGHBOUR_WEIGHT = 0.8
"""The weight of a token in the passage before or after, where one of the passage's own has 1."""

ORDINARY_PERCENT = 80
"""The weight of a token of the question is how far its best match lies above this percentile of all candidates'
matches: a token that all candidates contain weighs next to nothing. No table of frequencies is needed."""

SHORTLY_AFTER = timedelta(days=7)
"""A passage that was said up to so long after a day that a question names may still be about that day."""

_COMPARED_AT_ONCE = 8_000
"""Pairs of a token of the question and one of a passage that one slice compares, in 1 ms or so."""

_MULTIPLIED_AT_ONCE = 262_144
"""Multiplications of one matrix product, as many as OpenBLAS does in one thread: with more, its threads wait for each
other, ten times as long on a busy machine (measured)."""

_LONGEST_QUESTION = 1_000
"""Characters of a question in which times are looked for."""


class TokenMatch(NamedTuple):
    """How well a passage matches the tokens of a question.

    `window`: the sum over the tokens of their best matches in the passage and its neighbours, weighted as
    ORDINARY_PERCENT describes. `first`: the best match of the question's first token in the passage alone, a cosine.
    """

    window: float
    first: float


NO_MATCH = (None, None)
"""In place of a TokenMatch, for a passage without tokens."""


class PassageEvidence(Struct, frozen=True):
    """What is stored of a passage for the second stage, and which passages come before and after it.

    Only candidates have `before`, `after` and `asked`: the weight of the question's words in the turn before, if that
    is a question. `tokens`: TokenBits, row after row; None where there are none. `dates`:
    the days that it names, once it is embedded; `named_days` has them as numbers at once. `said_offset`: the minutes by
    which the clock of who said it was ahead of UTC; None: not known.
    """

    id: UUID
    before: UUID | None
    after: UUID | None
    asked: float | None
    tokens: bytes | None
    dates: Sequence[DateRange]
    said_offset: int | None = None
    named_days: Sequence[int] | None = None


def match_windows(
    question: Vectors, candidates: Sequence[UUID], evidence: Mapping[UUID, PassageEvidence]
) -> Slices[dict[UUID, TokenMatch]]:
    """How well each candidate and its neighbours match the question's tokens, shape (n, dimensions), by MaxSim.

    Candidates without tokens are left out.
    """
    matches: dict[UUID, NDArray[np.float32]] = {}
    dimensions = question.shape[1]
    max_bytes = _COMPARED_AT_ONCE // len(question) * dimensions // 8
    for group in _groups([passage for passage in evidence.values() if passage.tokens is not None], max_bytes):
        matches |= _best_matches(question, group)
        yield
    matched = [evidence[passage_id] for passage_id in candidates if passage_id in matches]
    if not matched:
        return {}
    no_match = np.zeros(len(question), np.float32)
    own, before, after = (
        np.array([matches.get(passage_id, no_match) if passage_id else no_match for passage_id in ids])
        for ids in zip(*((passage.id, passage.before, passage.after) for passage in matched), strict=True)
    )
    windows = np.maximum(own, NEIGHBOUR_WEIGHT * np.maximum(before, after))
    weights = windows.max(axis=0) - np.percentile(windows, ORDINARY_PERCENT, axis=0)
    rows = np.column_stack([windows @ weights, own[:, 0]]).tolist()
    return {passage.id: TokenMatch(*row) for passage, row in zip(matched, rows, strict=True)}


def _groups(passages: Sequence[PassageEvidence], max_bytes: int) -> Iterator[list[PassageEvidence]]:
    """The passages in groups of at most `max_bytes` bytes of tokens, or of one passage."""
    group: list[PassageEvidence] = []
    size = 0
    for passage in passages:
        length = len(passage.tokens or b"")
        if group and size + length > max_bytes:
            yield group
            group, size = [], 0
        group.append(passage)
        size += length
    if group:
        yield group


def _best_matches(question: Vectors, passages: Sequence[PassageEvidence]) -> dict[UUID, NDArray[np.float32]]:
    """For each passage, the greatest cosine of each token of the question with a token of the passage, at least 0."""
    count, dimensions = question.shape
    best = {passage.id: np.zeros(count, np.float32) for passage in passages}
    with_tokens = [(passage.id, passage.tokens) for passage in passages if passage.tokens]
    if not with_tokens:
        return best
    bits = np.frombuffer(b"".join(tokens for _, tokens in with_tokens), np.uint8).reshape(-1, dimensions // 8)
    rows = max(1, _MULTIPLIED_AT_ONCE // question.size)
    pieces = (np.unpackbits(bits[first : first + rows], axis=1) for first in range(0, len(bits), rows))
    bit_products = np.concatenate([piece.astype(np.float32) @ question.T for piece in pieces])
    starts = np.cumsum([0, *(len(tokens) * 8 // dimensions for _, tokens in with_tokens[:-1])])
    # The bits 1 and 0 stand for the numbers 1 and -1, and a vector of n such numbers has the length sqrt(n).
    products = 2 * np.maximum.reduceat(bit_products, starts) - question.sum(axis=1)
    cosines = np.maximum(products / math.sqrt(dimensions), 0)
    return best | dict(zip((passage_id for passage_id, _ in with_tokens), cosines, strict=True))


def named_times(question: str, asked_on: date | None) -> list[TimePhrase]:
    """The times that a question names; those relative to the day of asking only where that day is known."""
    return [
        time if asked_on is None else time.resolved(asked_on)
        for time in _times_in(question)
        if time.absolute or asked_on is not None
    ]


def depends_on_day(question: str) -> bool:
    """Whether a question has times that are others on another day, such as "last week", or "in March"."""
    return any(time.depends_on_day for time in _times_in(question))


def has_times(question: str) -> bool:
    """Whether a question names any time."""
    return bool(_times_in(question))


def _times_in(question: str) -> list[TimePhrase]:
    return times_in(LANGUAGES, normalize("NFC", question[:_LONGEST_QUESTION]))


def day_of_saying(at: datetime, said_offset: int | None = None, zone: tzinfo = UTC) -> date:
    """The day on which something was said by the clock of who said it, or else in the zone of who asks."""
    return (in_zone(at, zone) if said_offset is None else with_offset(at, said_offset)).date()


def score_dates(times: Sequence[TimePhrase], said_on: date | None, passage_ranges: Sequence[DateRange]) -> float:
    """1 if a passage was said in a time that the question names, or is about one; .5 if said SHORTLY_AFTER; else 0."""
    if said_on is None:
        return 0.0
    is_shortly_after = False
    for named in (named for time in times for named in time.ranges(said_on)):
        if named.first <= said_on <= named.last or any(_is_about(named, days) for days in passage_ranges):
            return 1.0
        is_shortly_after = is_shortly_after or timedelta() < said_on - named.last <= SHORTLY_AFTER
    return 0.5 if is_shortly_after else 0.0


def _is_about(named: DateRange, passage_range: DateRange) -> bool:
    return named.overlaps(passage_range) and passage_range.days <= max(named.days, BROAD_DAYS)
