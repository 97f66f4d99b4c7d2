"""The texts that a fuzzy search must compare: bounds that exclude no text that is near enough.

A text of n characters is near to a query of m if `1 - distance / max(m, n) >= threshold`, as the enhanced memory
server defines it. Levenshtein's distance is exact and computed in Python, for candidates that an index finds.

*By length.* The distance is at least the difference of the lengths, which bounds n from both sides.

*By trigrams.* pg_trgm takes a text for a set of trigrams, w + 1 for each word of w letters or digits, padded with two
spaces before and one after. One edit removes at most three of them: those with the character that is changed or
deleted, or the three around an added or removed space; an insertion removes at most two. So a text at distance d, of
which at least n - m are insertions, lacks at most 3d - (n - m) of the query's trigrams, and shares the others with it.
A text of n characters has at most n + 1 trigrams, so that the similarity of pg_trgm (shared by union) of a near text
has a lower bound. If that is not above zero (short queries, low thresholds, repeated words), trigrams exclude nothing
and only the length does.

*Without accents.* Texts are compared as they are and as they are without accents, and so is the query: "Mullar" is near
to "Müller". Names and kinds with accents are indexed without them; observations with accents, of about the query's
length, are compared one by one.

*By words.* Texts with all words of the query, in any form that recall finds them by, are compared, too: so is a
full-width text near to the usual one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from recollect.text.unicode_forms import normal
from recollect.words.characters import normalised
from recollect.words.stemming import without_accents

_LOST_BY_EDIT = 3

_LONGEST = 10_000_000
"""More characters than any text has."""

_ROUNDING = 0.999
"""pg_trgm computes with four-byte floats: its threshold is set a little below the exact one."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of every near text: `least` to `most` characters, and the least `similarity` to the query, if any."""

    least: int
    most: int
    similarity: float | None


@dataclass(frozen=True, slots=True)
class NearForm:
    """A query in lower case, in a normal form or without accents, with the bounds of near texts in the same form."""

    text: str
    bounds: Bounds


def min_similarity(forms: Sequence[NearForm]) -> float | None:
    """The least similarity by trigrams to any of these forms; None where that of one has no bound."""
    similarities = [form.bounds.similarity for form in forms if form.bounds.similarity is not None]
    return min(similarities) if len(similarities) == len(forms) else None


def bounds(length: int, trigrams: int, threshold: float) -> Bounds:
    """The bounds for a query with `length` characters (one at least) and `trigrams` distinct trigrams."""
    least, most = length - edits(length, threshold), _most(length, threshold)
    return Bounds(least, most, _similarity(length, trigrams, most, threshold))


def edits(longest: int, threshold: float) -> int:
    """The greatest distance of two near texts, the longer of which has `longest` characters."""
    distance = min(longest, int((1 - threshold) * longest) + 1)
    while distance > 0 and 1 - distance / longest < threshold:
        distance -= 1
    return distance


def nearness(query: str, texts: Iterable[str], threshold: float) -> float | None:
    """The similarity of the nearest of these texts to the query, 0..1; None if none is near enough.

    The query is in normal form NFC, and texts are compared in it.
    """
    best: float | None = None
    for text in map(normal, texts):
        longest = max(len(query), len(text))
        distance = Levenshtein.distance(query, text, score_cutoff=edits(longest, threshold))
        similarity = 1 - distance / longest
        if similarity >= threshold and (best is None or similarity > best):
            best = similarity
    return best


def nearest(query: str, query_folded: str, texts: Sequence[str], threshold: float) -> float | None:
    """The same of these texts as they are, and as they are folded."""
    found = nearness(query, texts, threshold)
    if query == query_folded and all(map(str.isascii, texts)):
        return found
    as_folded = nearness(query_folded, map(folded, texts), threshold)
    return max(found or 0.0, as_folded) if as_folded is not None else found


def folded(text: str) -> str:
    """A text in small letters, in normal form NFKC, without accents and with plain apostrophes."""
    lowered = normalised(text).lower()
    return lowered if lowered.isascii() else without_accents(lowered)


def _most(length: int, threshold: float) -> int:
    if threshold * _LONGEST <= length:
        return _LONGEST
    most = int(length / threshold) + 1
    while most > length and most - edits(most, threshold) > length:
        most -= 1
    return most


def _similarity(length: int, trigrams: int, most: int, threshold: float) -> float | None:
    if most > 3 * length:  # The threshold is too low for trigrams: each edit may remove three.
        return None
    lost = max(_LOST_BY_EDIT * edits(n, threshold) - (n - length) for n in range(length, most + 1))
    shared = trigrams - lost
    return _ROUNDING * shared / (trigrams + most + 1 - shared) if shared > 0 else None
