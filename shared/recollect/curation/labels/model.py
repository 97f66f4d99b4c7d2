"""Tags and importance of many entities at once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TagChange:
    """Tags to add to an entity and tags to remove from it; upper and lower case are the same."""

    name: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TagChangeResult:
    """What changed in the tags of one entity."""

    name: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
