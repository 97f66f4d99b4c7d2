"""What compaction and erasure take away, and what they tell of it."""

import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from uuid import UUID

from recollect.graphs.model import Moment
from recollect.nodes.model import NodeFields

COMPACT_GRAPH = "compact_graph"
"""The kind of job that compacts a graph."""

ERASE_PERSON = "erase"
"""The operation, as the log of a graph tells it."""


@dataclass(frozen=True, slots=True)
class Freed:
    """How many rows of each table compaction removes."""

    nodes: int = 0
    versions: int = 0
    observations: int = 0
    relations: int = 0
    aliases: int = 0
    passages: int = 0
    vectors: int = 0

    def __add__(self, other: "Freed") -> "Freed":
        """Both together."""
        mine, others = asdict(self), asdict(other)
        return Freed(**{table: count + others[table] for table, count in mine.items()})

    @property
    def rows(self) -> int:
        """All of them."""
        return sum(asdict(self).values())


@dataclass(frozen=True, slots=True)
class Compaction:
    """What one step freed, or would free; `horizon`: the oldest state that can be read then, None for all of them."""

    horizon: Moment | None
    freed: Freed
    more: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """How many jobs a look at graphs started, and whether others wait to be looked at."""

    started: int
    more: bool


@dataclass(frozen=True, slots=True)
class Piece:
    """A lineage, an observation or a relation to erase, and whether it is live."""

    id: UUID
    lives: bool


@dataclass(frozen=True, slots=True)
class Targets:
    """What an erasure takes: whole lineages, and observations and relations of others.

    `pattern` finds the erased names in texts, `whole` texts that are one of them; `created_by` is the subject whose
    writings go, too.
    """

    names: tuple[str, ...]
    pattern: str
    whole: str
    created_by: str | None
    lineages: tuple[Piece, ...] = ()
    observations: tuple[Piece, ...] = ()
    relations: tuple[Piece, ...] = ()

    @property
    def node_ids(self) -> list[UUID]:
        """The lineages' ids."""
        return [lineage.id for lineage in self.lineages]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an erasure removed, by table, and what it left, as counted by queries when it was done.

    `names`: those that the person was known by. `kept`: rows that still hold one of them, by table, such as an entity
    that has one in its own name; and what the subject wrote that others' entities rest on (`versions_by_subject`).
    """

    revision: int | None
    names: tuple[str, ...] = ()
    erased: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)


def redacted(fields: NodeFields, pattern: str) -> NodeFields:
    """The fields without those texts, tags and entries of the metadata that name somebody; name and type stay."""
    found = re.compile(pattern)

    def kept(text: str | None) -> str | None:
        return None if text is not None and found.search(text) else text

    return replace(
        fields,
        content=kept(fields.content),
        summary=kept(fields.summary),
        source=kept(fields.source),
        thread=kept(fields.thread),
        tags=tuple(tag for tag in fields.tags if not found.search(tag)),
        metadata={key: value for key, value in fields.metadata.items() if not _names(found, (key, value))},
    )


def _names(found: re.Pattern[str], value: Any) -> bool:
    """Whether a text within a value of JSON names somebody."""
    match value:
        case str():
            return found.search(value) is not None
        case dict():
            return any(_names(found, item) for item in value.items())
        case list() | tuple():
            return any(_names(found, item) for item in value)
    return False
