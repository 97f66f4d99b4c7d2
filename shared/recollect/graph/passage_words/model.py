"""How far words are counted, and what another analysis of them needs and finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.times import with_offset

COUNTED_AT_MOST = 100_000
"""Live passages of a graph whose words are counted, about; of a larger graph, a sample is."""

MIN_LETTERS = 4
MAX_LETTERS = 30
"""Letters of the words that are counted as they are written, to correct mistyped ones by."""


@dataclass(frozen=True, slots=True)
class AnalysedPassage:
    """A passage whose lexemes a former analysis of words made.

    `about`: the names of its entity, as of now. `said_at`: in UTC; None for a name. `said_offset`: as in IndexedText.
    `labels`: of its memory, of the first passage of one.
    """

    id: UUID
    graph_id: UUID
    text: str
    said_at: datetime | None
    said_offset: int | None
    is_live: bool
    about: str | None
    labels: Sequence[str]

    @property
    def said(self) -> datetime | None:
        """When it was said, by the clock of who said it; None for a name."""
        return None if self.said_at is None else with_offset(self.said_at, self.said_offset)


@dataclass(frozen=True, slots=True)
class Reanalysis:
    """What another analysis finds in a passage: its lexemes, and the days that it names."""

    id: UUID
    words: str
    named_days: Sequence[int]
