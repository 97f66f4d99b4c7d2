"""Texts that look the same and are written differently: Unicode's normal forms, and apostrophes."""

import re
import unicodedata

APOSTROPHE = re.compile("['\u2018\u2019\u201b\u02bc\uff07]")
"""Those that people and keyboards write for each other, as PostgreSQL's function `plain_apostrophes` has them."""

TYPED, PRINTED = "'", "\u2019"
"""The apostrophe of keyboards, and that of printed texts: the two that are written most."""


def normal(text: str) -> str:
    """The text in normal form NFC, in which a letter with marks is one character where Unicode has it."""
    return unicodedata.normalize("NFC", text)


def written_forms(text: str) -> list[str]:
    """The forms in which a text may be stored: composed (NFC), decomposed (NFD), and as it is; mostly they are one."""
    return list(dict.fromkeys((normal(text), unicodedata.normalize("NFD", text), text)))


def with_apostrophes(text: str) -> list[str]:
    """A text as it is, and with its apostrophes as keyboards and as printed texts have them."""
    return list(dict.fromkeys((text, APOSTROPHE.sub(TYPED, text), APOSTROPHE.sub(PRINTED, text))))


def plainly(text: str) -> str:
    """What texts are compared by that differ in case, normal form or apostrophes only."""
    return normal(APOSTROPHE.sub(TYPED, text)).casefold()
