"""Cursors of lists of memories."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidInput
from recollect.retrieval.recall.pages import BEFORE_ALL, ListPosition

TIMES = st.datetimes(timezones=st.just(UTC))


@given(st.floats(-1, 10), TIMES | st.just(BEFORE_ALL), st.uuids())
def test_a_cursor_tells_its_place(importance: float, at: datetime, passage_id: UUID) -> None:
    place = ListPosition(importance, at, passage_id)
    assert ListPosition.of_cursor(place.cursor) == place


def test_a_time_with_an_offset_is_the_same_moment() -> None:
    at = datetime.fromisoformat("2026-11-27T12:00:00+05:30")
    told = ListPosition.of_cursor(ListPosition(0.0, at, UUID(int=1)).cursor)
    assert (told.at, told.at.utcoffset()) == (at, timedelta())


def test_other_texts_are_refused(subtests: pytest.Subtests) -> None:
    good = ListPosition(0.0, BEFORE_ALL, UUID(int=1)).cursor
    for text in (
        "",
        "next",
        good[:-1],
        f"{good}_",
        good.replace("0.0", "nan"),
        f"0.0_{'9' * 30}_{UUID(int=1)}",
        "₀" * 5,
    ):
        with subtests.test(text), pytest.raises(InvalidInput) as refused:
            ListPosition.of_cursor(text)
        assert refused.value.path == "cursor"
