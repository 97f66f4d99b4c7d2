"""The forms of times in each language that has a table. Add another language here."""

from recollect.graph.passages.dates import (
    DAY,
    MONTH,
    WEEK,
    WEEKEND,
    YEAR,
    Language,
    Phrase,
    by_calendar,
    days_away,
    month_beside,
    unit_beside,
    units_away,
    units_until,
    weekday_beside,
)

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
    "month": {name: place for place, name in enumerate(_MONTHS, 1)}
    | {name[:3]: place for place, name in enumerate(_MONTHS, 1)}
    | {"sept": 9},
    "weekday": {name: place for place, name in enumerate(_WEEKDAYS, 1)},
    "number": {name: place for place, name in enumerate(_NUMBERS, 1)}
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


ENGLISH = Language(
    _ENGLISH,
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
        Phrase(f"{_LAST} {{unit}}", unit_beside(-1)),
        Phrase(f"{_NEXT} {{unit}}", unit_beside(1)),
        Phrase("this {unit}", unit_beside(0)),
        Phrase(f"{_LAST} {{weekday}}", weekday_beside(-1)),
        Phrase(f"{_NEXT} {{weekday}}", weekday_beside(1)),
        Phrase("this {weekday}", weekday_beside(1, today=True)),
        Phrase("{weekday}", weekday_beside(-1, 1)),
        Phrase(f"{{year}}-{{monthofyear}}-{{dayofmonth}}{_CLOCK}", by_calendar, absolute=True),
        Phrase(f"{{dayofmonth}}{_ORDINAL}(?: of)? {{month}},? ?{{year}}", by_calendar, absolute=True),
        Phrase(f"{{dayofmonth}}{_ORDINAL}(?: of)? {{month}}", by_calendar, absolute=True),
        Phrase(f"{{month}} (?:the )?{{dayofmonth}}{_ORDINAL},? ?{{year}}", by_calendar, absolute=True),
        Phrase(f"{{month}} (?:the )?{{dayofmonth}}{_ORDINAL}", by_calendar, absolute=True),
        Phrase("{month},? (?:of )?{year}", by_calendar, absolute=True),
        Phrase(f"{_LAST} {{month}}", month_beside(-1)),
        Phrase(f"{_NEXT} {{month}}", month_beside(1)),
        Phrase(
            _after("in", "since", "during", "until", "by", "of", "early", "late", "mid") + "{month}",
            by_calendar,
            absolute=True,
        ),
        Phrase(_after("this") + _NO_WORD + "{month}", by_calendar, absolute=True),
        Phrase("{season},? (?:of )?{year}", by_calendar, absolute=True),
        Phrase(f"{_LAST} {{season}}", month_beside(-1)),
        Phrase(f"{_NEXT} {{season}}", month_beside(1)),
        Phrase(
            _after("in", "in the", "during the", "this", "for the", "over the") + "{season}", by_calendar, absolute=True
        ),
        Phrase(
            _after("in", "since", "during", "until", "by", "of", "from", "year", "early", "late") + "{year}",
            by_calendar,
            absolute=True,
        ),
    ],
)

LANGUAGES = (ENGLISH,)
