"""The definition of a word for the ranked search: in any script, and the same in Python and in PostgreSQL.

The classes of regular expressions (`\\w`, `\\s`) depend on the locale of each, so they are spelled out. A word is a
run of characters that are no separators; in scripts without spaces (Chinese, Japanese, Korean, Thai, …) a text has as
many words as characters, and a query asks for each two signs that stand side by side, as recall does.

A word is found in all the forms that recall finds it by, with other endings or accents: passages with one of them tell
how the graph writes them (`other_forms`), and each of these counts as the word.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from recollect.errors import InvalidInput
from recollect.text.unicode_forms import normal
from recollect.words.analysis import AskedWord
from recollect.words.characters import bigrams, normalised
from recollect.words.languages import language_of
from recollect.words.stemming import forms
from recollect.words.stop_words import STOP_WORDS

MAX_WORDS = 64
"""Words of one query, at most."""

_APART = (
    r"\u0001-\u0020!-/:-@\[-\^`\{-~\u007f-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7"
    r"\u060c\u061b\u061f\u0964\u0965\u1680\u2000-\u200b\u200e-\u206f\u3000-\u3003\u3008-\u3011\u3014-\u301f\u30fb\ufeff"
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff3e\uff40\uff5b-\uff65"
)
"""White space and punctuation, except _ and the joiners within words of some scripts."""

_UNSPACED = (
    r"\u3040-\u30fa\u30fc-\u30ff\u3400-\u9fff\u1100-\u11ff\uac00-\ud7ff"
    r"\u0e00-\u0e2e\u0e30-\u0e4e\u0e50-\u0e59\u0e80-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17d7"
    r"\u17db-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
)
"""Characters of scripts that are written without spaces."""

_WITHIN = rf"[^{_APART}{_UNSPACED}]"

WORD = rf"[{_UNSPACED}]|{_WITHIN}+"
"""One word, as a regular expression for both."""

_RUN = re.compile(rf"(?P<unspaced>[{_UNSPACED}]+)|{_WITHIN}+")
_UNSPACED_WORD = re.compile(rf"[{_UNSPACED}]+")

MAX_EXPANDED = 16
"""Different words of a query whose other forms are found, at most: others are found as they are written."""

MAX_FORMS = 20
"""Other forms of one word, at most."""


LETTER_AS_APOSTROPHE = r"(?<=[^ ])\u02bc(?=[^ ])"
"""The one of them that is a letter, where it is written as an apostrophe, as a regular expression for both. All others
separate words."""

_LETTER_AS_APOSTROPHE = re.compile(LETTER_AS_APOSTROPHE)


def words_of(query: str) -> list[str]:
    """The words of a query in order, repetitions included; raises InvalidInput for too many."""
    words = [word for run in _RUN.finditer(_LETTER_AS_APOSTROPHE.sub("'", query)) for word in _words(run)]
    if len(words) > MAX_WORDS:
        raise InvalidInput(f"At most {MAX_WORDS} words; this query has {len(words)}", path="query")
    return words


def _words(run: re.Match[str]) -> list[str]:
    if run.lastgroup is None:
        return [run.group()]
    signs = list(bigrams(run.group()))
    return signs[:-1] or signs


def word_pattern(word: str, *others: str) -> str:
    """A regular expression for this word, or another form of it, but not for longer words that contain it.

    Words contain no characters that are special in regular expressions.
    """
    if _UNSPACED_WORD.fullmatch(word):
        return word
    any_form = f"(?:{'|'.join((word, *others))})" if others else word
    return rf"(?<!{_WITHIN}){any_form}(?!{_WITHIN})"


def expandable(words: Sequence[str]) -> dict[str, AskedWord]:
    """The words that may be written in other forms, in small letters, with these; MAX_EXPANDED at most."""
    lowered = dict.fromkeys(word.lower() for word in words if not _UNSPACED_WORD.fullmatch(word))
    language = language_of(lowered)
    content = [word for word in lowered if word not in STOP_WORDS]
    return {word: AskedWord(forms(normalised(word), language)) for word in content[:MAX_EXPANDED]}


def other_forms(asked: Mapping[str, AskedWord], texts: Iterable[str]) -> dict[str, list[str]]:
    """How texts write the words of a query (`asked`, of `expandable`) otherwise, in small letters; up to MAX_FORMS."""
    language = language_of(asked)
    written = dict.fromkeys(
        run.group().lower()
        for text in texts
        for run in _RUN.finditer(_LETTER_AS_APOSTROPHE.sub("'", normal(text)))
        if run.lastgroup is None
    )
    found: dict[str, list[str]] = {word: [] for word in asked}
    for other in written:
        lexemes = {*forms(normalised(other)), *forms(normalised(other), language)}
        for word, wanted in asked.items():
            if other != word and not lexemes.isdisjoint(wanted.forms) and len(found[word]) < MAX_FORMS:
                found[word].append(other)
    return found
