"""What a transfer carries, what became of it, and the state that an export reads."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from recollect.errors import InvalidInput
from recollect.graphs.model import Graph
from recollect.nodes.model import NewEntity, unique
from recollect.relations.model import NewRelation

MAX_NAME = 512
MAX_KIND = 256
MAX_TEXT = 10_000
MAX_RELATION_TYPE = 256
"""Characters at most, as the tools have it."""

MAX_LINES = 1_000
MAX_OBSERVATIONS = 10_000
"""What one chunk may hold: it is one transaction, and other writers of the graph wait for it."""

SHOWN_LINES = 5
"""Broken lines that an error's one sentence names."""

Item = NewEntity | NewRelation
"""What one line says. An export is what an import would make, so that both speak of the same values."""


class Unreadable(Exception):
    """A line that says nothing that can be kept. `reason` is for people and never holds the line's own text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Line:
    """One line that was understood; `number` counts from 1."""

    number: int
    item: Item


@dataclass(frozen=True, slots=True)
class BrokenLine:
    """One line that cannot be imported, and why."""

    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines that are imported in one revision, and those among them that are broken, each in order."""

    lines: tuple[Line, ...]
    broken: tuple[BrokenLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a chunk. `lines_skipped` said only what was known; `broken` lines were passed over."""

    entities_created: int = 0
    observations_added: int = 0
    relations_created: int = 0
    lines_skipped: int = 0
    broken: tuple[BrokenLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a graph that an export reads: all that `revision` and the time `at` show.

    `facts` counts the memories that no entity holds, which formats of entities and relations leave out.
    """

    graph_id: UUID
    revision: int
    at: datetime
    facts: int


@dataclass(frozen=True, slots=True)
class Page:
    """A part of an export. `last` is the id after which the next part begins; None is the end."""

    items: Sequence[Item]
    last: UUID | None


def judged(chunk: Chunk, graph: Graph | None) -> Chunk:
    """The chunk with the lines set aside whose kind the graph's whitelist leaves out."""
    refused = [BrokenLine(line.number, reason) for line in chunk.lines if (reason := _refusal(line.item, graph))]
    numbers = {line.number for line in refused}
    kept = tuple(line for line in chunk.lines if line.number not in numbers)
    return Chunk(kept, tuple(sorted((*chunk.broken, *refused), key=lambda line: line.number)))


def require_unbroken(chunk: Chunk) -> Chunk:
    """The chunk, if no line of it is broken; raises InvalidInput naming the first that are."""
    if not chunk.broken:
        return chunk
    shown = "; ".join(f"line {line.number}: {line.reason}" for line in chunk.broken[:SHOWN_LINES])
    more = f"; and {len(chunk.broken) - SHOWN_LINES} more" if len(chunk.broken) > SHOWN_LINES else ""
    raise InvalidInput(f"Nothing was imported, since lines are broken: {shown}{more}", path="lines")


def merged_by_name(entities: list[NewEntity]) -> list[NewEntity]:
    """One entity for each name: the first of that name, with the observations of all."""
    texts: dict[str, list[str]] = {}
    for entity in entities:
        texts.setdefault(entity.name, []).extend(entity.observations)
    firsts = {entity.name: entity for entity in reversed(entities)}
    return [replace(firsts[name], observations=tuple(unique(said))) for name, said in texts.items()]


def _refusal(item: Item, graph: Graph | None) -> str | None:
    if graph is None or isinstance(item, NewRelation):
        return None
    try:
        graph.require_kind(item.kind, "entityType")
    except InvalidInput as error:
        return error.message
    return None
