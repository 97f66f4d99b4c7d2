"""What is told anew: of two facts that say nearly the same, the newer one comes first.

"Lives in Oslo" and, a year later, "lives in Bergen" score alike for "where does she live?", and only the second is
true. In talk the same rule does harm: there a later turn answers, comments or repeats what was said (measured).
"""

import re
from collections.abc import Sequence, Set
from datetime import UTC, datetime
from unicodedata import normalize
from uuid import UUID

from msgspec import structs

from recollect.retrieval.recall.ranking import Hit

_MAX_COMPARED = 20
"""Hits that are compared with each other: the first ones."""

_MIN_SHARED = 0.5
"""Share of the words of the shorter text, from which two texts say nearly the same."""

_MIN_SCORE = 0.7
"""Share of the better fact's score that another one must have."""

_MAX_LESS_COVERED = 0.15
"""By how much less of the question's words the other may have."""

_FIRST = re.compile(
    r"\b(?:first|initial(?:ly)?|original(?:ly)?|earlier|earliest|previous(?:ly)?|former(?:ly)?|before|used to|oldest|"
    r"at the beginning|in the past|back then)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_](?:[^\W_]|[^\w\s!-~\u0964\u0965\u2000-\u206f\u3000-\u303f])*")
"""A word, with the marks within it that are no letters by themselves, as in Devanagari."""


def asks_for_first(question: str) -> bool:
    """Whether a question (in English) asks for what was so at first, and not for what is so now."""
    return _FIRST.search(question) is not None


def in_order_of_time(hits: Sequence[Hit], facts: Set[UUID], *, newest: bool = True) -> list[Hit]:
    """A ranking, best first, in which of facts that tell nearly the same the newest comes first, or else the oldest.

    It takes the place and the score of the best of these, which moves down by one place. `facts`: the passages that
    belong to no thread.
    """
    ordered = list(hits)
    told = {hit.key: _Told(hit) for hit in hits[:_MAX_COMPARED] if hit.passage_id in facts and not hit.outdated}
    for place in range(min(len(ordered), _MAX_COMPARED)):
        best = told.get(ordered[place].key)
        if best is None:
            continue
        others = (told.get(hit.key) for hit in ordered[place + 1 : _MAX_COMPARED])
        alike = [best, *(other for other in others if other is not None and other.tells_as_well(best))]
        first = (max if newest else min)(alike, key=lambda each: each.when)
        if first is not best:
            ordered.remove(first.hit)
            ordered.insert(place, structs.replace(first.hit, score=best.hit.score))
    return ordered


class _Told:
    """A fact with its words, and the moment at which it was told."""

    def __init__(self, hit: Hit) -> None:
        self.hit = hit
        self.words = frozenset(_WORD.findall(normalize("NFC", hit.text.casefold())))
        self.when: tuple[datetime, UUID] = hit.at or datetime.min.replace(tzinfo=UTC), hit.memory_id

    def tells_as_well(self, better: "_Told") -> bool:
        """Whether this fact says nearly the same as one with a better score, about the same entity or none."""
        return (
            (self.hit.name is None or better.hit.name is None or self.hit.node_id == better.hit.node_id)
            and self.hit.score >= _MIN_SCORE * better.hit.score
            and self.hit.terms["coverage"] >= better.hit.terms["coverage"] - _MAX_LESS_COVERED
            and 0 < _MIN_SHARED * min(len(self.words), len(better.words)) <= len(self.words & better.words)
        )
