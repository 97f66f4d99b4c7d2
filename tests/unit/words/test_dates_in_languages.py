"""Times in texts of other languages than English, and what looks like a time and is none."""

import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.words.dates import phrase_tables
from recollect.words.dates.day_numbers import MAX_ASKED_DAYS, MAX_NAMED_DAYS, asked_days, named_days
from recollect.words.dates.phrase_tables import LANGUAGES
from recollect.words.dates.phrases import MAX_RANGES, date_ranges, times_in
from recollect.words.dates.ranges import DateRange

SAID = date(2023, 10, 18)
"""A Wednesday."""

YESTERDAY, LAST_WEEK, THREE_DAYS_AGO = ["2023-10-17"], ["2023-10-09..2023-10-15"], ["2023-10-15"]
MARCH, THE_FIFTH, LAST_TUESDAY = ["2023-03-01..2023-03-31"], ["2023-05-05"], ["2023-10-17"]
BY_LANGUAGE = {
    "de": ("gestern", "letzte Woche", "vor drei Tagen", "im März 2023", "am 5. Mai 2023", "letzten Dienstag"),
    "fr": ("hier", "la semaine dernière", "il y a trois jours", "en mars 2023", "le 5 mai 2023", "mardi dernier"),
    "es": (
        "ayer",
        "la semana pasada",
        "hace tres días",
        "en marzo de 2023",
        "el 5 de mayo de 2023",
        "el martes pasado",
    ),
    "pt": (
        "ontem",
        "na semana passada",
        "há três dias",
        "em março de 2023",
        "5 de maio de 2023",
        "terça-feira passada",
    ),
    "it": ("ieri", "la settimana scorsa", "tre giorni fa", "nel marzo 2023", "il 5 maggio 2023", "martedì scorso"),
    "nl": ("gisteren", "vorige week", "drie dagen geleden", "in maart 2023", "op 5 mei 2023", "vorige dinsdag"),
    "pl": ("wczoraj", "w zeszłym tygodniu", "trzy dni temu", "w marcu 2023", "5 maja 2023", "w zeszły wtorek"),
    "tr": ("dün", "geçen hafta", "üç gün önce", "Mart 2023'te", "5 Mayıs 2023", "geçen salı günü"),
    "ru": ("вчера", "на прошлой неделе", "три дня назад", "в марте 2023 года", "5 мая 2023", "в прошлый вторник"),
    "zh": ("昨天", "上周", "三天前", "2023年3月", "2023年5月5日", "昨天"),
    "ja": ("昨日", "先週", "3日前", "2023年3月", "2023年5月5日", "この前の火曜日"),
    "ko": ("어제", "지난주", "3일 전", "2023년 3월", "2023년 5월 5일", "지난 화요일"),
    "ar": ("أمس", "الأسبوع الماضي", "قبل ثلاثة أيام", "مارس 2023", "5 مايو 2023", "الثلاثاء الماضي"),
    "hi": ("बीते कल", "पिछले हफ़्ते", "तीन दिन पहले", "मार्च 2023", "5 मई 2023", "पिछले मंगलवार"),
}


def mentioned(text: str, said: date = SAID) -> list[str]:
    """The ranges of a text, as `first..last`, or the one day."""
    ranges = date_ranges(LANGUAGES, text, said)
    return [str(one.first) if one.first == one.last else f"{one.first}..{one.last}" for one in ranges]


def test_each_language_has_its_words_for_days_and_ranges(subtests: pytest.Subtests) -> None:
    wanted = YESTERDAY, LAST_WEEK, THREE_DAYS_AGO, MARCH, THE_FIFTH, LAST_TUESDAY
    for language, texts in BY_LANGUAGE.items():
        for text, ranges in zip(texts, wanted, strict=True):
            with subtests.test(language, text=text):
                assert mentioned(text) == ranges


def test_each_phrase_has_the_words_that_its_meaning_needs(subtests: pytest.Subtests) -> None:
    for language in LANGUAGES:
        for phrase in language.phrases:
            with subtests.test(phrase.pattern):
                names = re.findall(r"\{([a-z]+)\}", phrase.pattern)
                values = dict.fromkeys(names, 1) | ({"year": 2023} if "year" in names else {})
                assert phrase.meaning(values, SAID)


def test_other_forms_and_edges(subtests: pytest.Subtests) -> None:
    for text, ranges in [
        ("Wir trafen uns im Ma\u0308rz 2023.", MARCH),  # Not composed, as file names of macOS are.
        ("GESTERN UND VORGESTERN", ["2023-10-17", "2023-10-16"]),
        ("heute Morgen", ["2023-10-18"]),
        ("上周二", ["2023-10-10"]),
        ("先週の火曜日", ["2023-10-10"]),
        ("지난주 화요일", ["2023-10-10"]),
        ("去年三月", ["2022-03-01..2022-03-31"]),
        ("कल", ["2023-10-17", "2023-10-19"]),
        ("निकल गया", []),
        ("قبل يومين", ["2023-10-16"]),
        ("オンライン", []),
        ("martta ve Mart'ta", ["2024-03-01..2024-03-31"]),
        ("25.11.2023 and 25/11/2023", ["2023-11-25"]),
        ("03/04/2023", ["2023-04-03", "2023-03-04"]),
        ("2023/10/02", ["2023-10-02"]),
        ("2023-W42 and 2023-W60", ["2023-10-16..2023-10-22"]),
        ("between 3 and 5 May", ["2023-05-03..2023-05-05"]),
        ("May 3-5, 2023; 5-3 May 2023", ["2023-05-03..2023-05-05"]),
        ("vom 3. bis 5. Mai 2023", ["2023-05-03..2023-05-05"]),
        ("5月3日到5日", ["2023-05-03..2023-05-05"]),
        ("in May of last year", ["2022-05-01..2022-05-31"]),
        ("A reunião passou para sexta-feira.", ["2023-10-13", "2023-10-20"]),
        ("Everything from May", ["2023-05-01..2023-05-31"]),
    ]:
        with subtests.test(text):
            assert mentioned(text) == ranges


def test_what_only_looks_like_a_time_is_none(subtests: pytest.Subtests) -> None:
    for text in [
        "Will May come?",
        "a letter from April",
        "one second, the second one",
        "release 1.2.2026, version 1.2.2026, v1.2.2026",
        "10.0.0.1, 192.168.2024.1 and 1.2.3",
        "the planet Mars",
        "2024 people",
        "La mayonesa",
        "Ein Maibaum",
        "order 20231104",
    ]:
        with subtests.test(text):
            assert mentioned(text) == []


def test_a_bare_weekday_may_be_a_part_of_a_name(subtests: pytest.Subtests) -> None:
    for text, sure in [
        ("What happened on Sunday?", True),
        ("What did we eat Sunday?", True),
        ("What did we eat Sunday evening?", True),
        ("What goes into a Sunday roast?", False),
        ("What did we buy on Black Friday?", False),
    ]:
        with subtests.test(text):
            assert [time.sure for time in times_in(LANGUAGES, text)] == [sure]


@given(
    st.text(
        "0123456789 -,./年月日前后昨今上下周一二年週先来曜어제오늘일전월년أمسيومशकलदिनपहलесявчрагоднйüşığçöäß'"
        "abcdefghijklmnopqrstuvwxyz",
        max_size=200,
    ),
    st.dates(),
)
def test_any_text_is_read_and_what_is_stored_of_it_is_bounded(text: str, said: date) -> None:
    ranges = date_ranges(LANGUAGES, text, said)
    assert len(ranges) <= MAX_RANGES
    assert len(named_days(ranges)) <= MAX_NAMED_DAYS
    around = [one for time in times_in(LANGUAGES, text) for one in time.ranges_around(said)]
    assert all(one.first <= one.last for one in around)


WORDS = sorted({*re.findall(r"\w+", Path(phrase_tables.__file__).with_name("date_words.toml").read_text("utf-8"))})


@given(
    st.lists(st.sampled_from(WORDS) | st.from_regex(r"[0-9]{1,4}[.年月日]?", fullmatch=True), max_size=10), st.dates()
)
def test_words_of_all_languages_are_read_in_any_order(words: list[str], said: date) -> None:
    for text in (" ".join(words), "".join(words)):
        assert len(date_ranges(LANGUAGES, text, said)) <= MAX_RANGES


def test_days_and_months_are_numbers_of_different_signs() -> None:
    day, month = DateRange.of_day(date(2023, 3, 5)), DateRange.of_months(date(2023, 3, 1))
    assert named_days([day]) == [date(2023, 3, 5).toordinal()]
    assert named_days([month]) == [-(2023 * 12 + 3)]
    assert named_days([DateRange(date(2023, 1, 1), date(2023, 12, 31))]) == [], "a year says nothing of its days"
    assert set(named_days([day])) <= set(asked_days([month])), "a day is in its month"
    assert set(named_days([month])) <= set(asked_days([month]))
    assert set(named_days([month])).isdisjoint(asked_days([day])), "a month says nothing of one of its days"


def test_the_numbers_of_a_long_range_are_bounded_to_its_last_days() -> None:
    decades = DateRange(date(1990, 1, 1), date(2023, 12, 31))
    codes = asked_days([decades])
    assert sum(code > 0 for code in codes) == MAX_ASKED_DAYS
    assert max(codes) == decades.last.toordinal()
    assert min(codes) == -(2023 * 12 + 12)
    assert len(codes) < 2 * MAX_ASKED_DAYS
