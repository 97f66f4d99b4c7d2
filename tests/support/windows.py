"""The window around a passage, computed without SQL, to compare with the one that the worker stored."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray

from recollect.words.analysis import Lexemes
from tests.support.memories import Agent, embedder

NEAR, FAR, NEIGHBOURS = 20, 80, 16

LIVE = """
    SELECT p.id, p.sequence, p.source, p.said_at, p.added_revision, p.text, p.speaker, n.name, p.settled,
        p.claimed_until, p.near::text, p.far::text, v.embedding::text, p.embedding_model
    FROM passages p JOIN nodes n ON n.tenant_id = p.tenant_id AND n.id = p.node_id
    LEFT JOIN searched_vectors v ON v.tenant_id = p.tenant_id AND v.passage_id = p.id AND v.model = p.embedding_model
    WHERE p.tenant_id = $1 AND p.removed_revision IS NULL ORDER BY p.said_at, p.added_revision, p.id"""


@dataclass(frozen=True)
class LivePassage:
    """A live passage: its text, and the window that the worker stored."""

    id: UUID
    sequence: UUID
    source: str
    said_at: datetime | None
    added_revision: int
    text: str
    speaker: str | None
    name: str | None
    settled: bool
    claimed_until: datetime | None
    near: str | None
    far: str | None
    embedding: str | None
    embedding_model: str | None

    @property
    def words(self) -> list[str]:
        label = f"{self.speaker}: "
        return (self.text[len(label) :] if self.text.lower().startswith(label) else self.text).split()

    @property
    def to_embed(self) -> str:
        return self.text if self.name is None or self.text.startswith(self.name) else f"{self.name}: {self.text}"


async def assert_windows(agent: Agent, owner: asyncpg.Connection) -> None:
    """Require that every live passage is settled, with its surrounding words and the vector that includes them."""
    live = [LivePassage(**row) for row in await owner.fetch(LIVE, agent.caller.tenant_id)]
    own = await embedder().embed([said.to_embed for said in live])
    vectors = {said.id: vector.astype(np.float16).astype(np.float64) for said, vector in zip(live, own, strict=True)}
    places = list(_placed(live))
    near, far = ([_lexemes(_window(*place, words)) for place in places] for words in (NEAR, FAR))
    for (said, before, after), near_words, far_words in zip(places, near, far, strict=True):
        assert (said.settled, said.claimed_until, said.embedding_model) == (True, None, embedder().model), said
        assert (_found_by(said.near), _found_by(said.far)) == (near_words, far_words), (said, before, after)
        shared = vectors[said.id] + sum(vectors[beside[0].id] for beside in (before, after) if beside) / 2
        _assert_alike(np.array((said.embedding or "").strip("[]").split(","), np.float64), shared)


def _placed(live: Sequence[LivePassage]) -> Iterator[tuple[LivePassage, list[LivePassage], list[LivePassage]]]:
    """Each passage with its counting predecessors and successors, nearest first."""
    sequences: defaultdict[UUID, list[LivePassage]] = defaultdict(list)
    for said in live:
        if said.source == "name":
            yield said, [], []
        else:
            sequences[said.sequence].append(said)
    for sequence in sequences.values():
        for place, said in enumerate(sequence):
            before = sequence[max(0, place - NEIGHBOURS) : place][::-1]
            yield said, _once(said, before), _once(said, sequence[place + 1 : place + 1 + NEIGHBOURS])


def _once(said: LivePassage, beside: Sequence[LivePassage]) -> list[LivePassage]:
    """The neighbours of a passage, nearest first, each text once and without its own."""
    nearest: dict[str, LivePassage] = {}
    for other in beside:
        nearest.setdefault(other.text, other)
    nearest.pop(said.text, None)
    return list(nearest.values())


def _window(said: LivePassage, before: Sequence[LivePassage], after: Sequence[LivePassage], words: int) -> str:
    preceding = [word for other in reversed(before) for word in other.words]
    following = [word for other in after for word in other.words]
    return " ".join([*preceding[-words:], *said.words, *following[:words]])


def _lexemes(text: str) -> Counter[str]:
    """The lexemes of a window, each as often as it occurs there."""
    lexemes = Lexemes(with_function_words=False)
    lexemes.add(text)
    return Counter({lexeme: len(set(places)) for lexeme, places in lexemes.positions.items()})


def _found_by(vector: str | None) -> Counter[str]:
    found = (entry.rpartition(":") for entry in (vector or "").split(" ") if entry)
    return Counter({lexeme.strip("'"): len(places.split(",")) for lexeme, _, places in found})


def _assert_alike(stored: NDArray[np.float64], wanted: NDArray[np.float64]) -> None:
    length = np.linalg.norm(wanted)
    assert np.abs(stored - wanted / (length or 1.0)).max() < 2e-3
