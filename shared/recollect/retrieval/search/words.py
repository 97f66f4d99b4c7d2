"""The definition of a word for the ranked search: in any script, and the same in Python and in PostgreSQL.

The classes of regular expressions (`\\w`, `\\s`) depend on the locale of each, so they are spelled out. A word is a
run of characters that are no separators; in scripts without spaces (Chinese, Japanese) each character is a word.
"""

import re

from recollect.errors import InvalidInput

MAX_WORDS = 64
"""Words of one query, at most."""

_APART = (
    r"\u0001-\u0020!-/:-@\[-\^`\{-~\u007f-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7"
    r"\u060c\u061b\u061f\u0964\u0965\u1680\u2000-\u200b\u200e-\u206f\u3000-\u3003\u3008-\u3011\u3014-\u301f\u30fb\ufeff"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff3e\uff40\uff5b-\uff65"
)
"""White space and punctuation, except _ and the joiners within words of some scripts."""

_UNSPACED = r"\u3040-\u30fa\u30fc-\u30ff\u3400-\u9fff"
"""Characters of scripts that are written without spaces."""

_WITHIN = rf"[^{_APART}{_UNSPACED}]"

WORD = rf"[{_UNSPACED}]|{_WITHIN}+"
"""One word, as a regular expression for both."""

_WORD = re.compile(WORD)
_UNSPACED_WORD = re.compile(rf"[{_UNSPACED}]")


LETTER_AS_APOSTROPHE = r"(?<=[^ ])\u02bc(?=[^ ])"
"""The one of them that is a letter, where it is written as an apostrophe, as a regular expression for both. All others
separate words."""

_LETTER_AS_APOSTROPHE = re.compile(LETTER_AS_APOSTROPHE)


def words_of(query: str) -> list[str]:
    """The words of a query in order, repetitions included; raises InvalidInput for too many."""
    words = _WORD.findall(_LETTER_AS_APOSTROPHE.sub("'", query))
    if len(words) > MAX_WORDS:
        raise InvalidInput(f"At most {MAX_WORDS} words; this query has {len(words)}", path="query")
    return words


def word_pattern(word: str) -> str:
    """A regular expression for this word, but not for longer words that contain it.

    Words contain no characters that are special in regular expressions.
    """
    return word if _UNSPACED_WORD.fullmatch(word) else rf"(?<!{_WITHIN}){word}(?!{_WITHIN})"
