"""The forms of times in each language that has a table: English and digits here, the others in `date_words.toml`.

Decided by measurement (docs/adr/0016-a-second-stage-of-recall.md): `dateparser`, the best-kept library, finds no range
("last week" is a moment), and looks for times in a text for 4 to 40 ms a language.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain
from pathlib import Path
from typing import Any
from unicodedata import normalize

from recollect.words.dates.arithmetic import (
    Meaning,
    adjacent_month,
    adjacent_unit,
    adjacent_weekday,
    by_calendar,
    days_away,
    days_of_month,
    days_of_saying,
    either_order,
    month_of_year,
    unit_fixed,
    units_away,
    units_until,
    week_of_year,
    weekday_of_week,
    weekday_range,
)
from recollect.words.dates.phrases import DIGITS, Language, Phrase, SurroundingWords
from recollect.words.dates.ranges import DAY, MONTH, WEEK, WEEKEND, YEAR

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_UNITS = {"day": DAY, "night": DAY, "week": WEEK, "month": MONTH, "year": YEAR, "weekend": WEEKEND}

_ENGLISH = {
    "month": {name: index for index, name in enumerate(_MONTHS, 1)}
    | {name[:3]: index for index, name in enumerate(_MONTHS, 1)}
    | {"sept": 9},
    "weekday": {name: index for index, name in enumerate(_WEEKDAYS, 1)},
    "number": {name: index for index, name in enumerate(_NUMBERS, 1)}
    | {"a": 1, "an": 1, "a couple of": 2, "a couple": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4},
    "unit": _UNITS | {f"{name}s": unit for name, unit in _UNITS.items()},
    "season": {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12},
}

_LAST, _NEXT = "(?:last|past|previous)", "(?:next|coming|upcoming)"
_WHOLE = r"(?<!\d[.,])"
"""Not after the point or comma of a number: "1,000 years ago" is not 0 years ago."""
_ORDINAL = "(?:st|nd|rd|th)?"
_CLOCK = r"(?:T[\d:.]{4,15}(?:Z|[+-]\d\d:?\d\d)?)?"
"""The time of day after a date, as programs write it."""
_NO_WORD = "(?-i:(?!may|march))"
"""After "this", the months that are also words are months only if they are capitalised."""


def _after(*words: str) -> str:
    """Words of which one must precede a time; not a part of the phrase, so that a longer phrase can match there."""
    return "(?:" + "|".join(rf"(?<=\b{word} )" for word in words) + ")"


_TO = "(?: ?[-\u2013] ?| (?:and|to|until|till|through) )"
_FEAST = r"(?<!\bblack )(?<!\bgood )(?<!\bash )(?<!\bcyber )(?<!\beaster )(?<!\bpalm )"
"""Not after a word with which a weekday is a feast."""
_ALL = _after("everything", "all", "anything", "notes", "memories", "entries", "news", "things", "summary", "updates")

_ENGLISH_FILLERS = """
a about add all also an and any anything are at been being by can could did do does doing done during each else entries
everything exactly facts find for from further get getting give go going happen happened happening happens has have i
idea in info information into is it just know last let list logged look made make me memories my new news note noted
notes of on or our out over overview please recall recap recent recorded remember said say see send show since so some
something stored stuff sum summarise summarize summary take tell than that the their then there these thing things this
those to told up update updates us was we went were what whats which who will with would you your
s m ve ll re d t don didn
"""
"""Words that say nothing about what is asked for but its time."""


def _weekdays(words: Mapping[str, int], between: Mapping[str, int] | None = None) -> dict[str, Mapping[str, int]]:
    """The weekdays, and those at the ends of a range, which may have forms of their own."""
    at_ends = {**words, **(between or {})}
    return {"weekday": words, "firstweekday": at_ends, "lastweekday": at_ends}


ENGLISH = Language(
    _ENGLISH | _weekdays(_ENGLISH["weekday"]),
    [
        Phrase("day before yesterday", days_away(-2)),
        Phrase("day after tomorrow", days_away(2)),
        Phrase("yesterday|last night", days_away(-1)),
        Phrase("tomorrow", days_away(1)),
        Phrase("today|tonight|this morning|this afternoon|this evening", days_away(0)),
        Phrase(_WHOLE + "{count} {unit} ago", units_away(-1)),
        Phrase("(?<!half ){number} {unit} ago", units_away(-1)),
        Phrase("(?:in|within) {count} {unit}", units_away(1)),
        Phrase("(?:in|within) {number} {unit}", units_away(1)),
        Phrase(_WHOLE + "{count} {unit} from now", units_away(1)),
        Phrase("{number} {unit} from now", units_away(1)),
        Phrase(f"{_LAST} {{count}} {{unit}}", units_until()),
        Phrase(f"{_LAST} {{number}} {{unit}}", units_until()),
        Phrase(f"{_LAST} {{unit}}", adjacent_unit(-1)),
        Phrase(f"{_NEXT} {{unit}}", adjacent_unit(1)),
        Phrase("this {unit}", adjacent_unit(0)),
        Phrase(f"{_LAST} {{weekday}}", adjacent_weekday(-1)),
        Phrase(f"{_NEXT} {{weekday}}", adjacent_weekday(1)),
        Phrase("this {weekday}", adjacent_weekday(1, today=True)),
        Phrase("{firstweekday}(?: ?[-\u2013] ?| (?:to|until|till|through) ){lastweekday}", weekday_range),
        Phrase("between {firstweekday} and {lastweekday}", weekday_range),
        Phrase("{weekday} (?:morning|afternoon|evening|night)", adjacent_weekday(-1, 1)),
        Phrase(
            _after("on", "since", "from", "until", "till", "by", "before", "after", "and", "to", "between")
            + "{weekday}",
            adjacent_weekday(-1, 1),
        ),
        Phrase(_FEAST + "{weekday}(?= ?(?:[?.!,;:]|$))", adjacent_weekday(-1, 1)),
        Phrase("{weekday}", adjacent_weekday(-1, 1), sure=False),
        Phrase("{year}-w{weekofyear}", week_of_year, absolute=True),
        Phrase(f"{{year}}-{{monthofyear}}-{{dayofmonth}}{_CLOCK}", by_calendar, absolute=True),
        Phrase(
            f"{{firstday}}{_ORDINAL}{_TO}{{dayofmonth}}{_ORDINAL}(?: of)? {{month}},? ?{{year}}",
            days_of_month,
            absolute=True,
        ),
        Phrase(f"{{firstday}}{_ORDINAL}{_TO}{{dayofmonth}}{_ORDINAL}(?: of)? {{month}}", days_of_month, absolute=True),
        Phrase(
            f"{{month}} {{firstday}}{_ORDINAL}{_TO}{{dayofmonth}}{_ORDINAL},? ?{{year}}", days_of_month, absolute=True
        ),
        Phrase(f"{{month}} {{firstday}}{_ORDINAL}{_TO}{{dayofmonth}}{_ORDINAL}", days_of_month, absolute=True),
        Phrase("{month},? (?:of )?last year", month_of_year(-1)),
        Phrase("{month},? (?:of )?this year", month_of_year(0)),
        Phrase("{month},? (?:of )?next year", month_of_year(1)),
        Phrase(f"{{dayofmonth}}{_ORDINAL}(?: of)? {{month}},? ?{{year}}", by_calendar, absolute=True),
        Phrase(f"{{dayofmonth}}{_ORDINAL}(?: of)? {{month}}", by_calendar, absolute=True),
        Phrase(f"{{month}} (?:the )?{{dayofmonth}}{_ORDINAL},? ?{{year}}", by_calendar, absolute=True),
        Phrase(f"{{month}} (?:the )?{{dayofmonth}}{_ORDINAL}", by_calendar, absolute=True),
        Phrase("{month},? (?:of )?{year}", by_calendar, absolute=True),
        Phrase(f"{_LAST} {{month}}", adjacent_month(-1)),
        Phrase(f"{_NEXT} {{month}}", adjacent_month(1)),
        Phrase(
            _after("in", "since", "during", "until", "by", "of", "early", "late", "mid") + "{month}",
            by_calendar,
            absolute=True,
        ),
        Phrase(_ALL + "from {month}", by_calendar, absolute=True),
        Phrase("from (?!(?:april|may|june|august)\\b){month}", by_calendar, absolute=True),
        Phrase(_after("this") + _NO_WORD + "{month}", by_calendar, absolute=True),
        Phrase("{season},? (?:of )?{year}", by_calendar, absolute=True),
        Phrase(f"{_LAST} {{season}}", adjacent_month(-1)),
        Phrase(f"{_NEXT} {{season}}", adjacent_month(1)),
        Phrase(
            _after("in", "in the", "during the", "this", "for the", "over the") + "{season}", by_calendar, absolute=True
        ),
        Phrase(
            _after("in", "since", "during", "until", "by", "of", "from", "year", "early", "late") + "{year}",
            by_calendar,
            absolute=True,
        ),
    ],
    anchors=frozenset(chain.from_iterable(_ENGLISH[name] for name in ("month", "weekday", "season", "unit")))
    | {"yesterday", "tomorrow", "today", "tonight", "night", "morning", "afternoon", "evening", DIGITS},
    context=SurroundingWords(
        since=frozenset({"since"}),
        to=frozenset({"and", "to", "until", "till", "through", "-", "\u2013"}),
        fillers=frozenset(_ENGLISH_FILLERS.split()),
    ),
)

_NO_VERSION = r"(?<!version )(?<!release )(?<!v)"
NUMBERS = Language(
    {},
    [
        Phrase(_NO_VERSION + r"{dayofmonth}\.{monthofyear}\.{year}", by_calendar, absolute=True),
        Phrase("{dayofmonth}/{monthofyear}/{year}", either_order, absolute=True),
        Phrase("{year}/{monthofyear}/{dayofmonth}", by_calendar, absolute=True),
    ],
    anchors=frozenset({DIGITS}),
)
"""Days in digits alone, in any language. Where it is not said which is the day and which the month, both are meant."""

_MEANINGS: Mapping[str, tuple[Meaning, bool]] = {
    "ago": (units_away(-1), False),
    "ahead": (units_away(1), False),
    "past": (units_until(), False),
    "unit -1": (adjacent_unit(-1), False),
    "unit 0": (adjacent_unit(0), False),
    "unit 1": (adjacent_unit(1), False),
    "weekday -1": (adjacent_weekday(-1), False),
    "weekday 0": (adjacent_weekday(1, today=True), False),
    "weekday 1": (adjacent_weekday(1), False),
    "weekday of -1": (weekday_of_week(-1), False),
    "weekday of 0": (weekday_of_week(0), False),
    "weekday of 1": (weekday_of_week(1), False),
    "weekday": (adjacent_weekday(-1, 1), False),
    "weekdays": (weekday_range, False),
    "month -1": (adjacent_month(-1), False),
    "month 1": (adjacent_month(1), False),
    "month of -1": (month_of_year(-1), False),
    "month of 0": (month_of_year(0), False),
    "days": (days_of_month, True),
    "calendar": (by_calendar, True),
}
"""What the phrases of `date_words.toml` mean, and whether by the calendar."""

_PERIODS = {"week": WEEK, "month": MONTH, "year": YEAR, "weekend": WEEKEND}
_ALTERNATIVE = re.compile(r"\s*\|\s*")
_PREPOSITIONS = re.compile(r"\(\?:([^()\[\]?]+)\) (?=\{(?:month|weekday|year)\})")
_LOOKAROUND = re.compile(r"\(\?<?[!=][^)]*\)")


def _languages() -> Iterator[Language]:
    text = Path(__file__).with_name("date_words.toml").read_text(encoding="utf-8")
    for table in tomllib.loads(normalize("NFC", text)).values():
        yield _language(table)


def _language(table: Mapping[str, Any]) -> Language:
    words = {
        "month": _numbered(table["months"]),
        **_weekdays(_numbered(table["weekdays"]), _numbered(table.get("weekdays_between", ()))),
        "number": _numbered(table["numbers"]),
        "unit": {form: _UNITS[unit] for unit, forms in table["units"].items() for form in _forms(forms)},
    }
    fixed = [*table["days"].items(), *table.get("periods", {}).items()]
    named = {
        name: [Phrase(variant, *_MEANINGS[name]) for pattern in patterns for variant in _variants(name, pattern)]
        for name, patterns in table["phrases"].items()
    }
    # What says more comes first: "last year in March" before "last year", "last Tuesday" before "Tuesday".
    general = [*named.pop("calendar"), *named.pop("weekday")]
    whole = [Phrase(pattern, _fixed(when)) for when, patterns in fixed for pattern in patterns]
    phrases = [*chain.from_iterable(named.values()), *whole, *general]
    context = SurroundingWords(
        since=frozenset(_forms(table["since"])),
        to=frozenset({*_forms(table["to"]), "-", "\u2013"}),
        fillers=frozenset(table["fillers"].split()),
    )
    return Language(
        words,
        phrases,
        anchors=_anchors(words, chain.from_iterable(patterns for _, patterns in fixed))
        | {form + ending for form in chain(words["month"], words["weekday"]) for ending in table.get("endings", ())},
        script=table.get("script", ""),
        spaced=table.get("spaced", True),
        context=context,
    )


def _forms(text: str) -> Sequence[str]:
    return [form.casefold() for form in _ALTERNATIVE.split(text)]


def _numbered(entries: Sequence[str]) -> dict[str, int]:
    return {form: number for number, entry in enumerate(entries, 1) for form in _forms(entry)}


def _fixed(when: str) -> Meaning:
    """The meaning of "-1" (so many days away), of "-1,1" (either), or of "week -1"."""
    unit, _, away = when.rpartition(" ")
    return unit_fixed(_PERIODS[unit], int(away)) if unit else days_of_saying(*map(int, away.split(",")))


def _variants(name: str, pattern: str) -> Sequence[str]:
    """A pattern as it is matched: with {n} in digits, and in words; a month of the calendar may have its year.

    The words before a time are not a part of it (`_after`), so that a longer phrase can match there.
    """
    if name == "calendar" and pattern.endswith("{month}"):
        pattern += "(?: (?:de |del )?{year})?"
    if (before := _PREPOSITIONS.match(pattern)) is not None:
        pattern = _after(*before[1].split("|")) + pattern[before.end() :]
    if "{n}" not in pattern:
        return [pattern]
    return [pattern.replace("{n}", _WHOLE + "{count}"), pattern.replace("{n}", "{number}")]


def _anchors(words: Mapping[str, Mapping[str, int]], fixed: Iterator[str]) -> Set[str]:
    """The words of which each time has one: months, weekdays, units, and of each other phrase its longest word."""
    named = chain.from_iterable(
        re.findall(r"[^\W\d_]+", form) for name in ("month", "firstweekday", "unit") for form in words[name]
    )
    plain = (_LOOKAROUND.sub("", phrase) for phrase in fixed)
    return frozenset(named) | {max(re.findall(r"[^\W\d_]+", phrase), key=len).casefold() for phrase in plain}


LANGUAGES = (ENGLISH, NUMBERS, *_languages())
