"""Halves of characters in JSON (`\\ud83d` alone, a lone surrogate): no text can hold one, and parsers refuse it."""

import re

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in a text of JSON: both halves of a character, one half alone, or any other."""


def is_encodable(text: str) -> bool:
    """Whether a text is without halves of characters, so that it can be stored."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def without_halves(body: bytes) -> bytes:
    """JSON with NUL in place of each half of a character, which parsers refuse without its place.

    NUL cannot be stored either: whoever checks the texts of the body refuses it by its path, in the same words.
    """
    return _ESCAPE.sub(lambda escape: b"\\u0000" if escape["half"] else escape[0], body)
