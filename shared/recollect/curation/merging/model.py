"""Several entities become one."""

from dataclasses import dataclass

from recollect.graph.entities.model import Entity


@dataclass(frozen=True, slots=True)
class RedirectedRelations:
    """How many relations went over to another entity, how many it had already, and how many would lead to itself."""

    moved: int
    doubled: int
    self_loops: int


@dataclass(frozen=True, slots=True)
class MergedEntity:
    """The entity that is left; how many observations the others had, and how many were new to it.

    Of the others' relations, how many are its own now, and how many were dropped: those that it had already
    (`duplicate_relations`) and those that would lead to itself (`self_loops`).
    """

    entity: Entity
    moved_observations: int
    added_observations: int
    redirected_relations: int
    duplicate_relations: int
    self_loops: int
