"""History that is older than it is kept is removed."""

from dataclasses import asdict, dataclass

from recollect.graph.graphs.model import Moment


@dataclass(frozen=True, slots=True)
class FreedRows:
    """How many rows of each table compaction removes."""

    nodes: int = 0
    versions: int = 0
    observations: int = 0
    relations: int = 0
    aliases: int = 0
    passages: int = 0
    vectors: int = 0

    def __add__(self, other: "FreedRows") -> "FreedRows":
        """Both together."""
        mine, others = asdict(self), asdict(other)
        return FreedRows(**{table: count + others[table] for table, count in mine.items()})

    @property
    def rows(self) -> int:
        """All of them."""
        return sum(asdict(self).values())


@dataclass(frozen=True, slots=True)
class Compaction:
    """What one step freed, or would free; `horizon`: the oldest state that can be read then, None for all of them."""

    horizon: Moment | None
    freed: FreedRows
    more: bool = False


@dataclass(frozen=True, slots=True)
class CompactionCheck:
    """How many jobs a look at graphs started, and whether others wait to be looked at."""

    started: int
    more: bool
