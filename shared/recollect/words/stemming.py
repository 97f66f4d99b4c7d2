"""Which forms of a word are one: its stem, and the same without accents.

Stems are those of Snowball (Porter), which PostgreSQL has, too: what it stemmed before is found as before. Each script
that one language mostly uses has that language's; Latin letters have English's, and that of the language of the text.
"""

import re
import unicodedata
from functools import cache, lru_cache

import Stemmer

MAX_LENGTH = 200
"""Characters of a lexeme: of a longer word, such as encoded data, the beginning counts."""

CACHED = 16_384
"""Words whose forms a process remembers: texts consist of few words, which come again and again."""

_SCRIPTS = (
    ("russian", re.compile(r"[\u0400-\u052f]")),
    ("greek", re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")),
    ("arabic", re.compile(r"[\u0600-\u06ff\u0750-\u077f]")),
    ("hindi", re.compile(r"[\u0900-\u097f]")),
    ("tamil", re.compile(r"[\u0b80-\u0bff]")),
    ("armenian", re.compile(r"[\u0530-\u058f]")),
)
_HEBREW = re.compile(r"[\u05d0-\u05ea]")
_HEBREW_PREFIX = re.compile(r"(?:\u05d5?[\u05d1\u05d4\u05db\u05dc\u05de\u05e9]|\u05d5)(?=[\u05d0-\u05ea]{3})")
"""The article, and words of one letter that Hebrew writes together with the next."""

_LATIN = str.maketrans(
    {
        "ß": "ss",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "ı": "i",
        "ŋ": "n",
        "ħ": "h",
        "ŧ": "t",
        "ё": "е",
        "ـ": "",
        "أ": "ا",
        "إ": "ا",
        "آ": "ا",
        "ى": "ي",
        "ς": "σ",
    }
)
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ß": "ss", "ø": "oe"})
_UMLAUT = re.compile("[äöüåßø]")


@lru_cache(maxsize=CACHED)
def stem(word: str, language: str = "english") -> str:
    """The stem of a word in lower case."""
    stemmed: str = _stemmer(language).stemWord(word)
    return stemmed


def forms(word: str, language: str | None = None) -> tuple[str, ...]:
    """The lexemes of one word in lower case, each once: first the one by which all words of this form are found.

    `language`: that of the text, where its letters are Latin; None for English.
    """
    word = word[:MAX_LENGTH]
    if word.isascii():
        return (stem(word),) if language is None else _unique(stem(word), stem(word, language))
    return _other_forms(word, language)


@lru_cache(maxsize=CACHED)
def _other_forms(word: str, language: str | None) -> tuple[str, ...]:
    folded = without_accents(word)
    for name, letters in _SCRIPTS:
        if letters.search(word):
            return _unique(word, folded, stem(folded, name))
    if _HEBREW.search(word):
        return _unique(word, folded, _HEBREW_PREFIX.sub("", folded, count=1))
    variants = [stem(word), stem(folded)]
    if _UMLAUT.search(word):
        variants.append(stem(word.translate(_UMLAUTS)))
    if language is not None:
        variants += [stem(word, language), stem(folded, language)]
    return _unique(*variants)


def without_accents(word: str) -> str:
    """A word in lower case without the marks above and below its letters."""
    decomposed = unicodedata.normalize("NFD", word.translate(_LATIN))
    plain = "".join(c for c in decomposed if unicodedata.category(c) != "Mn" or "\u0900" <= c <= "\u0dff")
    return unicodedata.normalize("NFC", plain) or word


def _unique(*lexemes: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(lexeme for lexeme in lexemes if lexeme))


@cache
def _stemmer(language: str) -> "Stemmer.Stemmer":
    return Stemmer.Stemmer(language, 0)
