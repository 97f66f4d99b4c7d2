"""Ranges from one weekday to another, in each language that has words for times."""

import tomllib
from datetime import date
from pathlib import Path

import pytest

from recollect.retrieval.recall.dated_candidates import days_of
from recollect.retrieval.recall.model import Question
from recollect.words.dates import phrase_tables
from recollect.words.dates.phrase_tables import LANGUAGES
from recollect.words.dates.phrases import date_ranges
from recollect.words.dates.ranges import DateRange

ASKED = date(2026, 11, 27)
"""A Friday."""

MONDAY_TO_WEDNESDAY = [DateRange(date(2026, 11, 23), date(2026, 11, 25))]

ASKING = {
    "en": [
        "What did I do from Monday to Wednesday?",
        "What happened between Monday and Wednesday?",
        "Monday-Wednesday",
        "What did we do Monday through Wednesday?",
    ],
    "de": [
        "Was habe ich von Montag bis Mittwoch gemacht?",
        "Was war vom Montag bis zum Mittwoch?",
        "Was habe ich zwischen Montag und Mittwoch gemacht?",
        "Montag-Mittwoch",
        "Montag bis Mittwoch",
    ],
    "fr": [
        "Qu'est-ce que j'ai fait de lundi à mercredi ?",
        "Qu'ai-je fait du lundi au mercredi ?",
        "entre le lundi et le mercredi",
        "depuis lundi jusqu'à mercredi",
        "lundi – mercredi",
    ],
    "es": [
        "¿Qué hice de lunes a miércoles?",
        "¿Qué pasó del lunes al miércoles?",
        "desde el lunes hasta el miércoles",
        "entre el lunes y el miércoles",
        "lunes - miércoles",
    ],
    "pt": [
        "O que fiz de segunda a quarta?",
        "O que aconteceu de segunda-feira a quarta-feira?",
        "desde segunda até quarta",
        "entre a segunda e a quarta",
        "segunda - quarta",
    ],
    "it": [
        "Cosa ho fatto da lunedì a mercoledì?",
        "dal lunedì al mercoledì",
        "tra il lunedì e il mercoledì",
        "lunedì - mercoledì",
        "da lunedì fino a mercoledì",
    ],
    "nl": [
        "Wat heb ik van maandag tot woensdag gedaan?",
        "van maandag tot en met woensdag",
        "maandag t/m woensdag",
        "tussen maandag en woensdag",
    ],
    "pl": [
        "Co robiłem od poniedziałku do środy?",
        "Co się stało między poniedziałkiem a środą?",
        "poniedziałek - środa",
    ],
    "tr": [
        "Pazartesiden çarşambaya kadar ne yaptım?",
        "Pazartesi'den çarşamba'ya kadar",
        "Pazartesi ile çarşamba arasında ne oldu?",
        "pazartesi gününden çarşamba gününe kadar",
        "pazartesi - çarşamba",
    ],
    "ru": [
        "Что я делал с понедельника по среду?",
        "Что было между понедельником и средой?",
        "от понедельника до среды",
        "понедельник – среда",
    ],
    "zh": ["从周一到周三发生了什么？", "星期一至星期三做了什么？", "週一和週三之間", "周一-周三"],
    "ja": ["月曜日から水曜日まで何をしましたか", "月曜と水曜の間に何があった", "月曜〜水曜"],
    "ko": ["월요일부터 수요일까지 무슨 일이 있었어?", "월요일과 수요일 사이에 뭐 했어?", "월요일 ~ 수요일"],
    "ar": ["ماذا فعلت من الاثنين إلى الأربعاء؟", "من يوم الاثنين إلى يوم الأربعاء", "ماذا حدث بين الاثنين والأربعاء؟"],
    "hi": ["सोमवार से बुधवार तक क्या हुआ?", "सोमवार और बुधवार के बीच क्या हुआ?"],
}

UNTIL_YESTERDAY = ["from Monday until yesterday", "von Montag bis gestern", "de lunes a ayer", "da lunedì a ieri"]

NO_RANGES = ["Montag und Mittwoch", "on Monday and Wednesday", "lunes y miércoles", "月曜日と水曜日", "周一和周三"]


def asked(text: str, on: date = ASKED) -> list[DateRange]:
    return list(days_of(Question(text, None, "model", asked_on=on)).ranges)


def test_each_language_has_ranges_of_weekdays(subtests: pytest.Subtests) -> None:
    table = Path(phrase_tables.__file__).with_name("date_words.toml")
    assert set(tomllib.loads(table.read_text(encoding="utf-8"))) == ASKING.keys() - {"en"}
    for language, questions in ASKING.items():
        for question in questions:
            with subtests.test(question, language=language):
                assert asked(question) == MONDAY_TO_WEDNESDAY


def test_that_is_all_they_ask_for(subtests: pytest.Subtests) -> None:
    for language, (question, *_) in ASKING.items():
        with subtests.test(question, language=language):
            assert days_of(Question(question, None, "model", asked_on=ASKED)).alone


def test_on_each_day_a_range_has_its_length(subtests: pytest.Subtests) -> None:
    for text, length in [("von Freitag bis Montag", 4), ("de viernes a domingo", 3), ("周三到周一", 6)]:
        for day in range(23, 30):
            with subtests.test(text, day=day):
                [days] = asked(text, on=date(2026, 11, day))
                assert days.days == length
                assert days.first < date(2026, 11, day)


def test_a_memory_names_the_days_within(subtests: pytest.Subtests) -> None:
    """The last such days, and the next: a text tells of what was and of what will be."""
    for text in ["In Rome from Monday to Wednesday", "Wir sind von Montag bis Mittwoch in Rom", "周一到周三在罗马"]:
        with subtests.test(text):
            ranges = date_ranges(LANGUAGES, text, ASKED)
            assert ranges == [*MONDAY_TO_WEDNESDAY, DateRange(date(2026, 11, 30), date(2026, 12, 2))]


def test_a_range_may_end_otherwise(subtests: pytest.Subtests) -> None:
    for text in UNTIL_YESTERDAY:
        with subtests.test(text):
            assert asked(text) == [DateRange(date(2026, 11, 23), date(2026, 11, 26))]


def test_two_weekdays_are_no_range(subtests: pytest.Subtests) -> None:
    for text in NO_RANGES:
        with subtests.test(text):
            assert all(days.days == 1 for days in asked(text))
