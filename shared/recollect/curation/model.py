"""What a merge did."""

from dataclasses import dataclass

from recollect.nodes.model import Entity


@dataclass(frozen=True, slots=True)
class Merged:
    """The entity that is left; how many observations the others had, how many were new to it, and moved relations."""

    entity: Entity
    moved_observations: int
    added_observations: int
    redirected_relations: int
