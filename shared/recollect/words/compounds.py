"""The parts of identifiers, paths, addresses, versions and numbers.

A compound is found as a whole and by its parts: `com.example.app.UserService` also by `UserService`, `parseHttpRequest`
by `http request`, `v1.26.4-rc2` by `1.26.4`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from recollect.words.stemming import CACHED, MAX_LENGTH, forms

MAX_PARTS = 32
"""Parts of one compound, at most."""

MAX_DIVIDED = 1_000
"""Characters of a compound in which parts are looked for."""

MAX_CACHED_LENGTH = 64
"""Characters of a compound that a process remembers, at most."""

_PLAIN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_VERSION = re.compile(r"v?(?P<number>\d+(?:\.\d+){1,4})(?:[-.+]?(?P<suffix>[a-z][\w.-]*))?")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}")
_CODE = re.compile(r"(?P<letters>[^\W\d_]{1,12})(?P<number>\d{2,})")
_QUANTITY = re.compile(r"\d+(?:[.,:]\d+)*[^\W\d_]{1,4}")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_JOINERS = re.compile(r"[-._/:@\\#+&=~?%,]+")
_SEGMENT_JOINERS = re.compile(r"[/:@\\#+&=~?%,]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")

MIN_CAMEL = 9
"""Characters from which a word with capitals inside is an identifier; shorter ones are mostly names (YouTube)."""

MIN_DIGITS = 4
"""Digits from which a number is an identifier."""


@dataclass(frozen=True, slots=True)
class Compound:
    """What a word that is not plain is found by.

    `forms`: the whole, in each way in which it is written. `parts`: lexemes of its parts. `is_plain`: its parts are
    words as good as the whole (well-known). `is_identifier`: it names one thing. `is_hash`: so does its beginning.
    """

    forms: tuple[str, ...]
    parts: tuple[str, ...] = ()
    is_plain: bool = False
    is_identifier: bool = False
    is_hash: bool = False


def is_compound(chunk: str) -> bool:
    """Whether a chunk is anything but letters in one piece."""
    return not chunk.isalpha() or (chunk.isascii() and _CAMEL.search(chunk) is not None)


def compound(chunk: str) -> Compound:
    """The whole and the parts of a chunk; a word with marks but without signs inside has no parts."""
    return _remembered_compound(chunk) if len(chunk) <= MAX_CACHED_LENGTH else _compound(chunk[:MAX_DIVIDED])


@lru_cache(maxsize=CACHED)
def _remembered_compound(chunk: str) -> Compound:
    return _compound(chunk)


def _compound(chunk: str) -> Compound:
    whole = chunk.lower()[:MAX_LENGTH]
    if _PLAIN.fullmatch(whole):
        return _hyphenated(whole)
    if _GROUPED.fullmatch(whole):
        return Compound((whole.replace(",", ""), whole), is_identifier=len(whole) > MIN_DIGITS)
    if _UUID.fullmatch(whole):
        return Compound((whole,), is_identifier=True)
    if _HASH.fullmatch(whole):
        return Compound((whole,), is_identifier=True, is_hash=True)
    if (version := _VERSION.fullmatch(whole)) is not None and not whole.isdigit():
        suffix = version["suffix"]
        number = () if version["number"] == whole else (version["number"],)
        return Compound((whole,), (*number, *([suffix] if suffix else [])), is_identifier=whole.count(".") > 1)
    if whole.isdigit():
        return Compound((whole,), is_identifier=len(whole) >= MIN_DIGITS and not _YEAR.fullmatch(whole))
    parts = tuple(dict.fromkeys(part for part in _parts(chunk) if part != whole))[:MAX_PARTS]
    if not parts and not any(character.isdigit() for character in whole):
        return Compound(forms(whole))
    joined = _JOINERS.split(whole)
    short = ("".join(joined),) if len(joined) == 2 and len(whole) <= 20 else ()
    return Compound((whole, *short), parts, is_identifier=_is_identifier(chunk))


def _hyphenated(whole: str) -> Compound:
    pieces = whole.split("-")
    joined = ("".join(pieces),) if len(pieces) == 2 and len(whole) <= 20 else ()
    parts = dict.fromkeys(lexeme for piece in pieces for lexeme in forms(piece))
    return Compound((*forms(whole), *joined), tuple(parts)[:MAX_PARTS], is_plain=True)


def _is_identifier(chunk: str) -> bool:
    has_digit, has_letter = any(c.isdigit() for c in chunk), any(c.isalpha() for c in chunk)
    if has_digit:
        return has_letter and len(chunk) >= MIN_DIGITS and not _QUANTITY.fullmatch(chunk)
    return len(chunk) >= MIN_CAMEL and (_CAMEL.search(chunk) is not None or re.search(r"[._/@\\]", chunk) is not None)


def _parts(chunk: str) -> Iterator[str]:
    segments = _SEGMENT_JOINERS.split(chunk)
    for segment in segments:
        pieces = [piece for piece in _JOINERS.split(segment) if piece]
        if len(segments) > 1 and len(pieces) > 1:
            yield segment.lower()[:MAX_LENGTH]
            if (version := _VERSION.fullmatch(segment.lower())) is not None:
                yield version["number"]
        for piece in pieces:
            yield from _pieces(piece, alone=len(segments) == 1 and len(pieces) == 1)


def _pieces(piece: str, *, alone: bool) -> Iterator[str]:
    if not alone and len(piece) > 1:
        yield from forms(piece.lower())
    if (code := _CODE.fullmatch(piece.lower())) is not None:
        yield code["number"]
    elif piece.isascii() and _CAMEL.search(piece):
        for hump in _HUMP.findall(piece):
            if len(hump) > 1:
                yield from forms(hump.lower())
