"""The second stage of recall compares token by token, and by the dates that a question names."""

from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.embedding.vectors import Vectors, unit_length
from recollect.fairness.computing import finish
from recollect.retrieval.recall import matching
from recollect.retrieval.recall.matching import (
    NEIGHBOUR_WEIGHT,
    PassageEvidence,
    TokenMatch,
    depends_on_day,
    match_windows,
    named_times,
    score_dates,
)
from recollect.words.dates.ranges import DateRange

DIMENSIONS = 64
Signs = list[list[bool]]


def passage(place: int, signs: Signs | None, before: int | None = None, after: int | None = None) -> PassageEvidence:
    """A passage with the signs of its tokens; `before` and `after` are the places of its neighbours."""
    tokens = None if signs is None else np.packbits(np.array(signs, bool).reshape(-1, DIMENSIONS), axis=1).tobytes()
    beside = [None if near is None else UUID(int=near) for near in (before, after)]
    return PassageEvidence(UUID(int=place), beside[0], beside[1], None, tokens, [])


@given(st.lists(st.integers(0, 3), min_size=3, max_size=8), st.integers(0, 1_000), st.sampled_from([1, 100, 8_000]))
def test_each_token_counts_by_its_best_match_in_the_passage_or_its_neighbours(
    lengths: list[int], seed: int, at_once: int
) -> None:
    """The result equals the comparison one by one, for any size of groups."""
    chance, last = np.random.default_rng(seed), len(lengths) - 1
    question = unit_length(chance.normal(size=(4, DIMENSIONS)))
    thread: list[Signs] = [(chance.random((length, DIMENSIONS)) > 0.5).tolist() for length in lengths]
    evidence = {
        UUID(int=n): passage(n, signs, n - 1 if n > 0 else None, n + 1 if n < last else None)
        for n, signs in enumerate(thread)
    }

    def best(token: Vectors, place: int) -> float:
        return max((float(token @ (np.array(signs) * 2 - 1)) / 8 for signs in thread[place]), default=0.0)

    windows = np.array(
        [
            [
                max(0, best(token, n), *(NEIGHBOUR_WEIGHT * best(token, m) for m in (n - 1, n + 1) if 0 <= m <= last))
                for token in question
            ]
            for n in range(last + 1)
        ]
    )
    expected = windows @ (windows.max(axis=0) - np.percentile(windows, 80, axis=0))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(matching, "_COMPARED_AT_ONCE", at_once)
        matched = finish(match_windows(question, list(evidence), evidence))
    assert [matched[UUID(int=n)].window for n in range(last + 1)] == pytest.approx(list(expected), abs=1e-4)
    first = [max(0, best(question[0], n)) for n in range(last + 1)]
    assert [matched[UUID(int=n)].first for n in range(last + 1)] == pytest.approx(first, abs=1e-4)


def test_a_passage_without_tokens_is_left_out() -> None:
    question = unit_length(np.ones((1, DIMENSIONS)))
    evidence = {one.id: one for one in (passage(0, None, after=1), passage(1, [[True] * DIMENSIONS], before=0))}
    assert finish(match_windows(question, list(evidence), evidence)).keys() == {UUID(int=1)}
    assert finish(match_windows(question, [UUID(int=0)], evidence)) == {}


def test_texts_of_stop_words_alone_match_nothing() -> None:
    """They were embedded, and have no token that counts."""
    evidence = {one.id: one for one in (passage(0, [], after=1), passage(1, [], before=0))}
    question = unit_length(np.ones((1, DIMENSIONS)))
    nothing = TokenMatch(0, 0)
    assert finish(match_windows(question, list(evidence), evidence)) == {UUID(int=0): nothing, UUID(int=1): nothing}


def test_a_long_question_is_compared_in_more_slices() -> None:
    """No slice holds the event loop longer than one of a short question does."""
    signs = [[True] * DIMENSIONS] * 100
    evidence = {one.id: one for one in (passage(n, signs) for n in range(32))}
    slices = {n: sum(1 for _ in match_windows(np.ones((n, DIMENSIONS), np.float32), [], evidence)) for n in (2, 32)}
    assert slices == {2: 1, 32: 16}


SAID = datetime(2023, 5, 10, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("question", "score"),
    [
        ("What did Ada do on 10 May 2023?", 1),
        ("What did Ada do in May?", 1),
        ("What did Ada do in 2023?", 1),
        ("What did Ada do on May 3?", 0.5),
        ("What did Ada do on May 2?", 0),
        ("What did Ada do on 11 May 2023?", 0),
        ("What did Ada do in May 2022?", 0),
        ("What did Ada do in April 2023?", 0),
        ("What did Ada do last week?", 0),
    ],
)
def test_a_passage_from_the_time_that_a_question_names_counts(question: str, score: float) -> None:
    assert score_dates(named_times(question, None), SAID.date(), []) == score


@pytest.mark.parametrize(
    ("question", "score"),
    [
        ("What did Ada do last week?", 1),
        ("What did Ada do in the last two weeks?", 1),
        ("What did Ada do 9 days ago?", 1),
        ("What did Ada do the week before, in April 2023, or yesterday?", 0),
        ("What did Ada do two weeks ago?", 0.5),
        ("What did Ada do last month?", 0),
        ("What did Ada do in May?", 1),
    ],
)
def test_a_relative_time_counts_from_the_day_of_the_question(question: str, score: float) -> None:
    asked_on = date(2023, 5, 19)
    assert depends_on_day(question), "in May, too, which names no year"
    assert score_dates(named_times(question, asked_on), SAID.date(), []) == score


def test_a_passage_that_mentions_a_relative_time_of_the_question_counts() -> None:
    named = named_times("What is due tomorrow?", date(2023, 6, 1))
    assert score_dates(named, SAID.date(), [DateRange.of_day(date(2023, 6, 2))]) == 1


def test_dates_at_the_end_of_the_calendar_are_scored() -> None:
    last = date(9999, 12, 31)
    assert score_dates(named_times("What did Ada do on 28 December?", None), last, []) == 0.5
    assert score_dates(named_times("What did Ada do on 31 December, or in January?", None), last, []) == 1


def test_a_passage_that_mentions_the_date_counts_whenever_it_was_said() -> None:
    named = named_times("Where was Ada on 3 March 2021?", None)
    day = DateRange.of_day(date(2021, 3, 3))
    assert score_dates(named, SAID.date(), [day]) == 1
    assert score_dates(named, SAID.date(), [DateRange(day.first - timedelta(days=6), day.last)]) == 1
    assert score_dates(named, SAID.date(), [DateRange(date(2021, 1, 1), date(2021, 12, 31))]) == 0, "too broad"
    assert score_dates(named, None, [day]) == 0, "a name was said at no time"
