"""Relations and the subgraphs that they make."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from recollect.nodes.model import Entity


@dataclass(frozen=True, slots=True)
class NewRelation:
    """An edge between two names; a name that nothing has yet becomes a placeholder."""

    source: str
    target: str
    type: str
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def triple(self) -> tuple[str, str, str]:
        """What makes it the same relation as another."""
        return self.source, self.target, self.type


@dataclass(frozen=True, slots=True)
class Relation:
    """A stored edge with the names of its ends."""

    id: UUID
    source: str
    target: str
    type: str


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Entities and relations; `next_offset` is where to go on where the list of entities was cut."""

    entities: list[Entity]
    relations: list[Relation]
    next_offset: int | None = None
