"""What a passage is ranked by beside its vector: what its tokens mean in it, and the days that it tells of."""

from collections.abc import Sequence
from dataclasses import dataclass

from recollect.graph.passages.date_phrases import LANGUAGES
from recollect.graph.passages.dates import DateRange, told_ranges
from recollect.graph.passages.model import PendingPassage
from recollect.platform.computing import each
from recollect.platform.embedding import TokenBits

EVIDENCE_GENERATION = 2
"""Raise it with any change of what is made of a text here or by an embedder's tokens: what is stored is made anew by a
reembedding, and until then it is not read."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of one passage: its TokenBits, row after row (empty where the embedder has none), and the days it tells of."""

    tokens: bytes
    dates: Sequence[DateRange]


async def evidence_of(passages: Sequence[PendingPassage], tokens: Sequence[TokenBits]) -> list[Evidence]:
    """What is to be stored of passages that were embedded, in order. Other calls go on in between."""

    def make(one: tuple[PendingPassage, TokenBits]) -> Evidence:
        passage, bits = one
        said = passage.said_at
        dates = [] if said is None else told_ranges(LANGUAGES, passage.text or "", said.date())
        return Evidence(bits.tobytes(), dates)

    return await each(zip(passages, tokens, strict=True), make)
