"""The queries of the classic searches, and their results."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.graph.entities.model import Entity
from recollect.graph.nodes.model import unique
from recollect.text.unicode_forms import APOSTROPHE, TYPED, normal, with_apostrophes
from recollect.words.analysis import AskedWord, query_of

MIN_ANY_CASE = 4
"""Least characters of a name that is recognised in a text in any case: shorter names are often words (IT, US)."""

MAX_MENTIONED = 100
"""Entities that are recognised in one text, at most."""

MAX_NAME_PIECES = 8
"""Words and marks of a name that is looked for in a text, at most."""

_PIECE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]")
"""A word or a mark; where words are written without spaces, a character."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFilter:
    """The entities to search, and the page of the results to return. None and no tags filter nothing.

    `tags`: any of them, in any case. `archived`: archived entities are found, too.
    """

    kind: str | None = None
    tags: tuple[str, ...] = ()
    min_importance: float | None = None
    max_importance: float | None = None
    archived: bool = True
    offset: int = 0
    limit: int = 1000

    @property
    def is_filtered(self) -> bool:
        """Whether the filter excludes entities for another reason than that they are archived."""
        bounds = (self.kind, self.min_importance, self.max_importance)
        return bool(self.tags) or any(bound is not None for bound in bounds)


@dataclass(frozen=True, slots=True)
class SubstringQuery(SearchFilter):
    """A case-insensitive substring of names, kinds and observations."""

    text: str


@dataclass(frozen=True, slots=True)
class RankedQuery(SearchFilter):
    """Words; entities that contain many of them, and rare ones, rank first."""

    text: str


@dataclass(frozen=True, slots=True)
class BooleanQuery(SearchFilter):
    """Terms with AND, OR and NOT; `boolean` has the grammar."""

    text: str


@dataclass(frozen=True, slots=True)
class FuzzyQuery(SearchFilter):
    """A text to which a name, a kind or an observation should be similar. `threshold`: the least similarity, 0..1."""

    text: str
    threshold: float = 0.7


@dataclass(frozen=True, slots=True)
class DateQuery(SearchFilter):
    """The time in which entities were created or last changed, both ends included; None leaves an end open."""

    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class LabelQuery:
    """Words of a question; a summary or tags should contain at least the share `share` (0..1) of them.

    `optional`: of the words, those that do not count where no label has them. Only nodes of these kinds and with any of
    these tags match; empty tuples filter nothing. `fresh_only`: only nodes whose freshness has not run out.
    """

    words: tuple[AskedWord, ...]
    share: float
    optional: frozenset[AskedWord] = frozenset()
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    fresh_only: bool = False
    limit: int = 100

    @property
    def any_word(self) -> str:
        """A tsquery for texts that contain any of the words."""
        return " | ".join(map(query_of, self.words))


@dataclass(frozen=True, slots=True)
class LabelMatch:
    """A node whose summary or tags contain words of the query: that text, and the share of the words in it."""

    node_id: UUID
    text: str
    share: float


@dataclass(frozen=True, slots=True)
class RankedHit:
    """An entity with its TF-IDF score, and its fields that contain words of the query."""

    entity: Entity
    score: float
    in_name: bool
    in_kind: bool
    in_observations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RankedHits:
    """A page of hits, best first; `next_offset`: where the next page begins, None after the last one."""

    hits: list[RankedHit]
    next_offset: int | None = None


@dataclass(frozen=True, slots=True)
class FuzzyTexts:
    """Texts of one entity that a fuzzy search compares, in lower case."""

    id: UUID
    texts: Sequence[str]


def phrases(text: str) -> list[str]:
    """Every run of up to MAX_NAME_PIECES words and marks in a text, each once: the candidates for names in it.

    Those of the text in normal form NFC are among them, since they are the keys of names, and so are those with other
    apostrophes.
    """
    forms = (spelled for form in (text, normal(text)) for spelled in with_apostrophes(form))
    return unique(run for form in unique(forms) for run in _runs(form))


def _runs(text: str) -> Iterator[str]:
    pieces = [match.span() for match in _PIECE.finditer(text)]
    for first, (start, _) in enumerate(pieces):
        for last in range(first, min(first + MAX_NAME_PIECES, len(pieces))):
            yield text[start : pieces[last][1]]


def in_small_letters(names: Sequence[str]) -> list[str]:
    """Names in lower case, each once."""
    return sorted({name.lower() for name in names})


def like_pattern(text: str) -> str:
    """A LIKE pattern that finds `text` anywhere in texts in normal form NFC, with any character for an apostrophe."""
    return APOSTROPHE.sub("_", _literally(normal(text)))


def plain_pattern(text: str) -> str:
    """A LIKE pattern that finds `text` anywhere in texts in normal form NFC with plain apostrophes."""
    return _literally(APOSTROPHE.sub(TYPED, normal(text)))


def _literally(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def ranked_hit(entity: Entity, score: float, words: Sequence[str]) -> RankedHit:
    """A hit with the fields that contain these words, also as parts of longer ones, as in the reference server."""
    lowered = [word.lower() for word in words]

    def matches(text: str) -> bool:
        compared = normal(text).lower()
        return any(word in compared for word in lowered)

    observations = tuple(observation for observation in entity.observations if matches(observation))
    return RankedHit(entity, score, matches(entity.name), matches(entity.kind or ""), observations)
