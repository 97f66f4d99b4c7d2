"""Compaction: history that is older than the retention is removed."""

from dataclasses import asdict, dataclass

from recollect.graph.graphs.model import Moment


@dataclass(frozen=True, slots=True)
class FreedRows:
    """How many rows of each table a compaction removes."""

    nodes: int = 0
    versions: int = 0
    observations: int = 0
    relations: int = 0
    aliases: int = 0
    passages: int = 0
    vectors: int = 0

    def __add__(self, other: "FreedRows") -> "FreedRows":
        """The sum of both, table by table."""
        mine, others = asdict(self), asdict(other)
        return FreedRows(**{table: count + others[table] for table, count in mine.items()})

    @property
    def rows(self) -> int:
        """The sum over all tables."""
        return sum(asdict(self).values())


@dataclass(frozen=True, slots=True)
class Compaction:
    """The rows that one step removed, or would remove. `horizon`: the oldest state readable after it; None: all."""

    horizon: Moment | None
    freed: FreedRows
    more: bool = False


@dataclass(frozen=True, slots=True)
class CompactionCheck:
    """How many jobs a check of graphs started, and whether more graphs wait for their check."""

    started: int
    more: bool
