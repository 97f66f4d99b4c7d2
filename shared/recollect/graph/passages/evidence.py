"""The evidence by which a passage is ranked, beside its vector: bits of its tokens' vectors, and days that it names."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recollect.embedding import TokenBits
from recollect.fairness.computing import collect_yielding
from recollect.graph.passages.model import PendingPassage
from recollect.times import with_offset
from recollect.words.dates.phrase_tables import LANGUAGES
from recollect.words.dates.phrases import date_ranges
from recollect.words.dates.ranges import DateRange

EVIDENCE_GENERATION = 2
"""The generation of stored evidence. Raise it with any change in how evidence is made, here or by an embedder's tokens:
evidence of an older generation is not read, and a reembedding replaces it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one passage: its TokenBits, row after row, and its days.

    `tokens`: None where the embedder has none for any text of its language.
    """

    tokens: bytes | None
    dates: Sequence[DateRange]


def make_evidence(text: str, said_at: datetime | None, bits: TokenBits) -> Evidence:
    """Make the evidence of a passage from its embedded text, the time when it was said, and the bits of its tokens.

    `said_at`: by the clock of who said it.
    """
    dates = [] if said_at is None else date_ranges(LANGUAGES, text, said_at.date())
    return Evidence(bits.tobytes() if bits.shape[1] else None, dates)


async def evidence_of(passages: Sequence[PendingPassage], tokens: Sequence[TokenBits]) -> list[Evidence]:
    """Make the evidence of embedded passages, in order. Other calls go on in between."""

    def make(passage: PendingPassage, bits: TokenBits) -> Evidence:
        said_at = None if passage.said_at is None else with_offset(passage.said_at, passage.said_offset)
        return make_evidence(passage.text or "", said_at, bits)

    return await collect_yielding(make(*embedded) for embedded in zip(passages, tokens, strict=True))
