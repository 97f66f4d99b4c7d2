"""How far words are counted, and what another analysis of them needs and finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.text.unicode_forms import normal
from recollect.times import with_offset
from recollect.words.analysis import passage_vector
from recollect.words.dates.day_numbers import named_days
from recollect.words.dates.phrase_tables import LANGUAGES
from recollect.words.dates.phrases import ranges_of, times_in

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

    def reanalysed(self) -> "Reanalysis":
        """What the present analysis finds in it."""
        said_at = self.said
        if said_at is None:
            return Reanalysis(self.id, self.graph_id, passage_vector(self.text, about=self.about), ())
        words = passage_vector(self.text, about=self.about, said_on=said_at.date(), labels=self.labels)
        days = named_days(ranges_of(times_in(LANGUAGES, normal(self.text)), said_at.date()))
        return Reanalysis(self.id, self.graph_id, words, days)


@dataclass(frozen=True, slots=True)
class Reanalysis:
    """What another analysis finds in a passage: its lexemes, and the days that it names."""

    id: UUID
    graph_id: UUID
    words: str
    named_days: Sequence[int]
