"""Makes the rows of passages: the pieces of texts, with their words and times, column by column."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from pgvector import HalfVector

from recollect.embedding import NOTHING_PREPARED
from recollect.fairness.computing import collect_yielding
from recollect.graph.graphs.model import Revision
from recollect.graph.passages.evidence import EVIDENCE_GENERATION, make_evidence
from recollect.graph.passages.model import (
    IndexedText,
    Source,
    is_dated,
    speaker,
    split,
    text_to_embed,
)
from recollect.ids import new_id
from recollect.postgres.transactions import Transaction
from recollect.text.unicode_forms import normalize
from recollect.times import with_offset
from recollect.words.analysis import passage_vector
from recollect.words.dates.day_numbers import named_days
from recollect.words.dates.phrase_tables import LANGUAGES
from recollect.words.dates.phrases import TimePhrase, ranges_of, times_in
from recollect.words.dates.ranges import DateRange


async def split_all(memories: Iterable[IndexedText]) -> list["SplitText"]:
    """Memories with the pieces of their texts. A text that several memories have is split once."""
    pieces: dict[str, list[Piece]] = {}

    def split_once(memory: IndexedText) -> SplitText:
        if memory.text not in pieces:
            pieces[memory.text] = _split(memory.text)
        return SplitText(memory, pieces[memory.text])

    return await collect_yielding(map(split_once, memories))


def count_pieces(texts: Iterable["SplitText"]) -> int:
    """The number of passages that these memories make."""
    return sum(len(text.pieces) for text in texts)


def passages_of(texts: Iterable["SplitText"]) -> Iterator["PassageRow"]:
    """Yield the passages of memories, in order.

    They are made one at a time: a call may write 40,000, and the garbage collector would block the event loop while it
    traverses all of them.
    """
    return ((text.memory, position, piece) for text in texts for position, piece in enumerate(text.pieces))


async def columns_of(passages: Sequence["PassageRow"], now: datetime) -> dict[str, list[Any]]:
    """Passages, column by column; those without a time of saying are said now."""
    found = await collect_yielding(
        (_words(memory, position, piece, now), _attributes(memory, piece, now)) for memory, position, piece in passages
    )
    return {
        "ids": [new_id() for _ in passages],
        "node_ids": [memory.node_id for memory, _, _ in passages],
        "memory_ids": [memory.memory_id for memory, _, _ in passages],
        "sources": [memory.source for memory, _, _ in passages],
        "positions": [position for _, position, _ in passages],
        "threads": [memory.thread for memory, _, _ in passages],
        "said_at": [memory.said_at for memory, _, _ in passages],
        "expires_at": [memory.expires_at for memory, _, _ in passages],
        "texts": [piece.text for _, _, piece in passages],
        "words": [words for words, _ in found],
        "speakers": [piece.speaker for _, _, piece in passages],
        "dated": [piece.dated for _, _, piece in passages],
        "created_by": [memory.created_by for memory, _, _ in passages],
        "attributes": [attributes for _, attributes in found],
        "version_ids": [memory.version_id for memory, _, _ in passages],
    }


def _attributes(memory: IndexedText, piece: "Piece", now: datetime) -> dict[str, Any] | None:
    """A memory's own attributes, its clock, and the days that a piece of it names; None without any."""
    said = with_offset(memory.said_at or now, memory.said_offset)
    days = [] if memory.source == Source.NAME else named_days(ranges_of(piece.times, said.date()))
    own = {"said_offset": memory.said_offset, "named_days": days or None}
    return {**(memory.attributes or {}), **{name: value for name, value in own.items() if value is not None}} or None


async def prepared_columns(
    tx: Transaction, revision: Revision, passages: Sequence["PassageRow"], ids: Sequence[UUID]
) -> dict[str, Any]:
    """The vectors and the evidence of the passages whose texts were embedded before, column by column."""
    prepared = tx.prepared or NOTHING_PREPARED
    rows = zip(ids, passages, strict=True) if prepared.embedded else ()
    found = [
        (passage_id, text, _said_at(memory, revision), prepared.embedded[text])
        for passage_id, (memory, _, piece) in rows
        if (text := text_to_embed(memory.name, piece.text)) in prepared.embedded
    ]
    evidence = await collect_yielding(make_evidence(text, at, embedded.tokens) for _, text, at, embedded in found)
    return {
        "model": prepared.model,
        "generation": EVIDENCE_GENERATION,
        "embedded_ids": [passage_id for passage_id, *_ in found],
        "vectors": [HalfVector(embedded.vector) for *_, embedded in found],
        "tokens": [item.tokens for item in evidence],
        "dates": [multirange(item.dates) for item in evidence],
    }


def _said_at(memory: IndexedText, revision: Revision) -> datetime | None:
    """When a memory was said, by the clock of who said it; None for a name."""
    return None if memory.source == Source.NAME else with_offset(memory.said_at or revision.at, memory.said_offset)


def integers(numbers: Sequence[int]) -> str | None:
    """Numbers as the text of a PostgreSQL array: a list of arrays of several lengths is none. None without any."""
    return f"{{{','.join(map(str, numbers))}}}" if numbers else None


def multirange(ranges: Sequence[DateRange]) -> str:
    """Ranges of days as the text of a PostgreSQL datemultirange."""
    return f"{{{','.join(f'[{days.first},{days.last}]' for days in ranges)}}}"


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text, its speaker, whether it has a time (`is_dated`), and the times that it names."""

    text: str
    speaker: str | None
    dated: bool
    times: Sequence[TimePhrase]


class SplitText(NamedTuple):
    """A memory, and the pieces of its text."""

    memory: IndexedText
    pieces: Sequence[Piece]


PassageRow = tuple[IndexedText, int, Piece]
"""A memory, and one of its pieces with its number among them, from 0."""


def _split(text: str) -> list[Piece]:
    text_speaker = speaker(text)
    return [
        Piece(piece, text_speaker, is_dated(piece), times_in(LANGUAGES, normalize("NFC", piece)))
        for piece in split(text)
    ]


def _words(memory: IndexedText, position: int, piece: Piece, written_at: datetime) -> str:
    said = with_offset(memory.said_at or written_at, memory.said_offset)
    said_on = None if memory.source == Source.NAME else said.date()
    labels = memory.labels if position == 0 else ()  # Once: else all passages of a long text would match a tag.
    return passage_vector(piece.text, about=memory.about, said_on=said_on, labels=labels)
