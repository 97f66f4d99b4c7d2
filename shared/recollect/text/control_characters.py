"""Text of others for terminals and logs: characters that would control the reader's screen are escaped."""

import unicodedata

_CATEGORIES = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters, lone surrogates, and separators of lines and paragraphs."""

_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that make a text look like another by changing the direction of a part."""


_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
"""Characters that show nothing though Unicode counts them as letters, marks or symbols."""


def hides(text: str) -> bool:
    """Whether the text holds characters that show nothing, so that it can look like another text or like none.

    They are format characters, such as a zero width space, and fillers. Some languages and emoji join letters by them:
    this is for short names by which people are recognised.
    """
    return any(unicodedata.category(character) == "Cf" or character in _FILLERS for character in text)


def is_visible(text: str) -> bool:
    """Whether the text holds a letter, number, punctuation mark or symbol that shows."""
    return any(unicodedata.category(character)[0] in "LNPS" and character not in _FILLERS for character in text)


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


_TURNING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def in_one_direction(text: str) -> str:
    """A text without the characters that override, embed or isolate the direction of writing.

    For titles and labels, in which no markup can keep a stored text from turning the words around it. The directions of
    Hebrew and Arabic words need none of these characters.
    """
    return text.translate(_TURNING)
