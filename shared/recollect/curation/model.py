"""What curation did."""

from dataclasses import dataclass

from recollect.nodes.model import Entity


@dataclass(frozen=True, slots=True)
class Merged:
    """The entity that is left; how many observations the others had, how many were new to it, and moved relations."""

    entity: Entity
    moved_observations: int
    added_observations: int
    redirected_relations: int


@dataclass(frozen=True, slots=True)
class Retagging:
    """Tags to give an entity and to take from it; they match without regard to case."""

    name: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retagged:
    """What a retagging changed."""

    name: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
