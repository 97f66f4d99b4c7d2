"""Lone surrogates in JSON, such as `\\ud83d` alone: half a character, which no text can hold and parsers refuse."""

import re

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in a text of JSON: both halves of a character, one half alone, or any other."""


def is_encodable(text: str) -> bool:
    """Whether a text has no lone surrogates, so that it can be stored."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def replace_lone_surrogates(body: bytes) -> bytes:
    """Replace each lone surrogate in JSON by NUL.

    Parsers refuse a lone surrogate without saying where it is. NUL cannot be stored either, so the check of the body's
    texts refuses it in the same words, and names its path.
    """
    return _ESCAPE.sub(lambda escape: b"\\u0000" if escape["half"] else escape[0], body)
