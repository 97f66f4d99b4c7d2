"""The results of a merge of entities."""

from dataclasses import dataclass

from recollect.graph.entities.model import Entity


@dataclass(frozen=True, slots=True)
class RedirectedRelations:
    """How many relations moved to another entity, how many it had already, and how many would be self-loops."""

    moved: int
    doubled: int
    self_loops: int


@dataclass(frozen=True, slots=True)
class MergedEntity:
    """The entity that is left; how many observations the others had, and how many of these were new to it.

    Of the others' relations: how many it has now, and how many were dropped, because it had them already
    (`duplicate_relations`) or because they would lead to itself (`self_loops`).
    """

    entity: Entity
    moved_observations: int
    added_observations: int
    redirected_relations: int
    duplicate_relations: int
    self_loops: int
