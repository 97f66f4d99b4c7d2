"""Texts that look the same and are written differently: Unicode's normal forms, and apostrophes."""

import re
import unicodedata
from typing import Literal

MAX_MARKS = 30
"""The maximum number of combining marks on one letter that count, as in Unicode's stream-safe text format (UAX #15)."""

_MARKS = re.compile(rf"(?:[^\w\x00-\x7f]|[\uff9e\uff9f]){{{MAX_MARKS + 1},}}")
"""A run of characters of which all may be combining marks; those of East Asian half width become such marks."""

APOSTROPHE = re.compile("['\u2018\u2019\u201b\u02bc\uff07]")
"""Those that people and keyboards write for each other, as PostgreSQL's function `plain_apostrophes` has them."""

TYPED, PRINTED = "'", "\u2019"
"""The apostrophe of keyboards, and that of printed texts: the two that are written most."""


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """The text in a normal form of Unicode, without the marks on one letter after the first MAX_MARKS.

    To sort n marks takes the standard library n² steps: a tenth of a second for 8,000 of them.
    """
    return unicodedata.normalize(form, text if text.isascii() else _MARKS.sub(_first_marks, text))


def _first_marks(run: re.Match[str]) -> str:
    """A run of marks and other characters, without the marks after the first MAX_MARKS side by side."""
    kept: list[str] = []
    count = 0
    for character in run[0]:
        is_mark = unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0
        count = count + 1 if is_mark else 0
        if count <= MAX_MARKS:
            kept.append(character)
    return "".join(kept)


def normal(text: str) -> str:
    """The text in normal form NFC, in which a letter with marks is one character where Unicode has it."""
    return normalize("NFC", text)


def written_forms(text: str) -> list[str]:
    """The forms in which a text may be stored: composed (NFC), decomposed (NFD), and as it is; mostly they are one."""
    return list(dict.fromkeys((normal(text), normalize("NFD", text), text)))


def with_apostrophes(text: str) -> list[str]:
    """A text as it is, and with its apostrophes as keyboards and as printed texts have them."""
    return list(dict.fromkeys((text, APOSTROPHE.sub(TYPED, text), APOSTROPHE.sub(PRINTED, text))))


def plainly(text: str) -> str:
    """What texts are compared by that differ in case, normal form or apostrophes only."""
    return normal(APOSTROPHE.sub(TYPED, text)).casefold()
