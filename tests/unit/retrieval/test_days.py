"""The days that a question names."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.retrieval.recall.dated_candidates import MAX_RANGES, NamedDays, days_of
from recollect.retrieval.recall.model import Question
from tests.unit.retrieval.test_recall_model import candidate

ASKED = date(2026, 11, 27)
"""A Friday."""


def asked(text: str, on: date | None = ASKED, zone: str | None = None) -> NamedDays:
    return days_of(Question(text, None, "model", asked_on=on, time_zone=zone))


def told(days: NamedDays) -> list[str]:
    return [str(one.first) if one.first == one.last else f"{one.first}..{one.last}" for one in days.ranges]


def test_the_days_that_a_question_names_are_found(subtests: pytest.Subtests) -> None:
    for text, ranges in [
        ("What happened yesterday?", ["2026-11-26"]),
        ("last Tuesday", ["2026-11-24"]),
        ("on 2026-11-25", ["2026-11-25"]),
        ("this morning", ["2026-11-27"]),
        ("two weeks ago", ["2026-11-10..2026-11-16"]),
        ("3 days ago", ["2026-11-24"]),
        ("What happened in March?", ["2026-03-01..2026-03-31", "2027-03-01..2027-03-31"]),
        ("What happened in November?", ["2026-11-01..2026-11-30", "2027-11-01..2027-11-30"]),
        ("in March 2025", ["2025-03-01..2025-03-31"]),
        ("between 3 and 5 May", ["2026-05-03..2026-05-05", "2027-05-03..2027-05-05"]),
        ("between Monday and Wednesday", ["2026-11-23..2026-11-25"]),
        ("on Monday and Wednesday", ["2026-11-23", "2026-11-30", "2026-11-25", "2026-12-02"]),
        ("from 2026-11-01 to 2026-11-05", ["2026-11-01..2026-11-05"]),
        ("What is new since Wednesday?", ["2026-11-25..2026-11-27"]),
        ("Was gibt es Neues seit Mittwoch?", ["2026-11-25..2026-11-27"]),
        ("¿Qué hay de nuevo desde el miércoles?", ["2026-11-25..2026-11-27"]),
        ("Was ist seit 2026-11-25 passiert?", ["2026-11-25..2026-11-27"]),
        ("vom 1.11.2026 bis 5.11.2026", ["2026-11-01..2026-11-05"]),
        ("tra lunedì e mercoledì", ["2026-11-23..2026-11-25"]),
        ("entre el lunes y el miércoles", ["2026-11-23..2026-11-25"]),
        ("Monday through Wednesday", ["2026-11-23..2026-11-25"]),
        ("Monday - Wednesday", ["2026-11-23..2026-11-25"]),
        ("Will Monday Smith call?", []),
        ("Cosa ha detto a casa da Maria ieri?", ["2026-11-26"]),
        ("on 29 February", ["2024-02-29", "2028-02-29"]),
        ("What is due tomorrow?", ["2026-11-28"]),
        ("What goes into a Sunday roast?", []),
        ("Where does Ada live?", []),
    ]:
        with subtests.test(text):
            assert told(asked(text)) == ranges


def test_from_one_weekday_to_another_is_less_than_a_week_on_every_day(subtests: pytest.Subtests) -> None:
    """Also on one of the two: on a Wednesday, "between Monday and Wednesday" ends on that day."""
    for text, length in [("between Monday and Wednesday", 3), ("from Friday to Monday", 4), ("Friday - Sunday", 3)]:
        for day in range(23, 30):
            with subtests.test(text, day=day):
                [days] = asked(text, on=date(2026, 11, day)).ranges
                assert days.days == length
                assert days.first < date(2026, 11, day)


def test_whether_it_asks_for_nothing_else(subtests: pytest.Subtests) -> None:
    for text, alone in [
        ("What happened yesterday?", True),
        ("yesterday", True),
        ("Give me a summary of last week", True),
        ("Everything from March, please", True),
        ("What's new since Wednesday?", True),
        ("What did I do between Monday and Wednesday?", True),
        ("What did we do from Monday until Wednesday?", True),
        ("Was habe ich zwischen Montag und Mittwoch gemacht?", True),
        ("¿Qué hice entre el lunes y el miércoles?", True),
        ("What did we deploy between Monday and Wednesday?", False),
        ("WHAT HAPPENED YESTERDAY?", True),
        ("2026-11-25", True),
        ("Was ist gestern passiert?", True),
        ("Qu'est-ce qui s'est passé hier ?", True),
        ("¿Qué pasó ayer?", True),
        ("Что было вчера?", True),
        ("昨天发生了什么？", True),
        ("昨日は何がありましたか", True),
        ("어제 무슨 일이 있었어?", True),
        ("ماذا حدث أمس؟", True),
        ("कल क्या हुआ?", True),
        ("What did we deploy yesterday?", False),
        ("What did Will do yesterday?", False),
        ("What did IT do yesterday?", False),
        ("昨天部署了什么？", False),
        ("What did room 12 cost yesterday?", False),
    ]:
        with subtests.test(text):
            assert asked(text).alone is alone


def test_without_the_day_of_asking_only_full_dates_are_known() -> None:
    assert told(asked("What happened yesterday?", on=None)) == []
    assert told(asked("What happened in March?", on=None)) == []
    assert told(asked("What happened on 5 May 2026?", on=None)) == ["2026-05-05"]


def test_a_pasted_log_asks_for_no_day(subtests: pytest.Subtests) -> None:
    lines = {
        "ISO 8601": "2026-11-27T09:00:12Z INFO worker 3 processed a batch\n",
        "with a space": "2026-11-27 09:00:12,123 ERROR no answer\n",
        "with slashes": "2026/11/27 09:00:12 [error] upstream timed out\n",
        "syslog": "Nov 27 09:00:12 db1 sshd[12]: connection closed\n",
    }
    for form, line in lines.items():
        with subtests.test(form):
            log = line * 10
            assert told(asked(log)) == []
            assert told(asked(f"{log}What did Ada say about this host on 24 November 2026?")) == ["2026-11-24"]
            assert asked(f"What happened at {line}").ranges, "in a short question, somebody asks for it"


def test_days_begin_and_end_in_the_zone_of_who_asks(subtests: pytest.Subtests) -> None:
    for day, zone, begins, ends in [
        ("2026-11-25", None, "2026-11-25T00:00Z", "2026-11-26T00:00Z"),
        ("2026-11-25", "Pacific/Auckland", "2026-11-24T11:00Z", "2026-11-25T11:00Z"),
        ("2026-03-29", "Europe/Berlin", "2026-03-28T23:00Z", "2026-03-29T22:00Z"),  # 23 hours
        ("2026-10-25", "Europe/Berlin", "2026-10-24T22:00Z", "2026-10-25T23:00Z"),  # 25 hours
        ("2026-09-06", "America/Santiago", "2026-09-06T04:00Z", "2026-09-07T03:00Z"),  # without a midnight
    ]:
        with subtests.test(day, zone=zone):
            parameters = asked(day, zone=zone).parameters
            assert parameters["range_starts"] == [datetime.fromisoformat(begins)]
            assert parameters["range_ends"] == [datetime.fromisoformat(ends)]


def test_a_question_is_asked_on_the_day_of_its_zone() -> None:
    question = Question("What happened yesterday?", None, "model", asked_at=datetime(2026, 11, 27, 23, tzinfo=UTC))
    assert question.in_zone(None).asked_on == date(2026, 11, 27)
    assert question.in_zone("Asia/Tokyo").asked_on == date(2026, 11, 28)
    past = datetime(2026, 1, 1, tzinfo=UTC)
    assert question.in_zone("America/New_York", past).asked_on == date(2025, 12, 31)


TIMES = st.sampled_from(
    [
        "yesterday",
        "in March",
        "since",
        "between",
        "to",
        "and",
        "2026-11-25",
        "Monday",
        "9999-12-31",
        "昨天",
        "999 years ago",
    ]
)


@given(
    st.lists(TIMES | st.text(max_size=20), max_size=12).map(" ".join),
    st.dates(),
    st.sampled_from(["UTC", "Asia/Tokyo", None]),
)
def test_no_question_is_refused_and_its_ranges_are_bounded(text: str, on: date, zone: str | None) -> None:
    days = asked(text, on=on, zone=zone)
    assert len(days.ranges) <= MAX_RANGES
    parameters = days.parameters
    assert all(start <= end for start, end in zip(parameters["range_starts"], parameters["range_ends"], strict=True))


def test_nothing_answers_for_some_days_on_which_nothing_was_said() -> None:
    """However near its meaning is: "The backup ran." of today is no answer to what happened yesterday."""
    near = [candidate(1, own_similarity=0.9)]
    assert asked("What happened yesterday?").answering(near, frozenset(), 0.3) == []
    assert asked("What happened in 2019?").answering(near, frozenset(), 0.3) == near
    assert asked("What happened yesterday?").answering(near, {near[0].id}, 0.3) == near
