"""Whether a text shows anything: what shows nothing can be neither read nor named again."""

import unicodedata

NO_VISIBLE_CHARACTER = "Must contain a visible character"
"""The fault of a text or name that shows nothing."""

_BLANK_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
"""Control and format characters, half characters, and white space."""

_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Fillers and joiners that Unicode counts among letters, marks and symbols, and that show nothing."""


def is_visible(text: str) -> bool:
    """Whether a text has a visible character."""
    return any(map(_is_visible, text))


def _is_visible(character: str) -> bool:
    if character.isalnum() and character.isascii():
        return True
    if character in _BLANK_LETTERS or "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef":
        return False
    return unicodedata.category(character) not in _BLANK_CATEGORIES
