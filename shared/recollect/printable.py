"""Text of others for terminals and logs: characters that would control the reader's screen are escaped."""

import unicodedata

_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters, lone surrogates, and separators of lines and paragraphs."""

_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that make a text look like another by changing the direction of a part."""


def controls(text: str) -> bool:
    """Whether the text holds invisible characters that have an effect."""
    return any(map(_is_control, text))


def printable(text: str, *, lines: bool = False) -> str:
    r"""The text with such characters as escapes (`\x1b`, `\t`, `\u202e`). `lines` leaves ends of lines as they are."""
    if not controls(text):
        return text
    return "".join(_escaped(char) if _is_control(char) and not (lines and char == "\n") else char for char in text)


def printable_json(text: str) -> str:
    """A JSON document with such characters as escapes of JSON: the same document."""
    return "".join(f"\\u{ord(char):04x}" if _is_control(char) and char != "\n" else char for char in text)


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in _CATEGORIES or character in _DIRECTIONS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
