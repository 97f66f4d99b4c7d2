"""Text that others chose, where a terminal or a log shows it: what would steer the reader's screen is written out."""

import unicodedata

_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters, lone surrogates, and what ends a line or a paragraph."""

_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""What makes a text look like another by turning a part of it around."""


def controls(text: str) -> bool:
    """Whether the text holds characters that are not shown but do something."""
    return any(map(_is_control, text))


def printable(text: str, *, lines: bool = False) -> str:
    r"""The text with such characters as escapes (`\x1b`, `\t`, `\u202e`). `lines` leaves ends of lines as they are."""
    if not controls(text):
        return text
    return "".join(_escaped(each) if _is_control(each) and not (lines and each == "\n") else each for each in text)


def printable_json(text: str) -> str:
    """A JSON document with such characters as escapes of JSON: the same document."""
    return "".join(f"\\u{ord(each):04x}" if _is_control(each) and each != "\n" else each for each in text)


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in _CATEGORIES or character in _DIRECTIONS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
