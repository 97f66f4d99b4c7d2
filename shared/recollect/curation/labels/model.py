"""Tags and importance of many entities at once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TagChange:
    """Tags to give an entity and to take from it; they match without regard to case."""

    name: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TagChangeResult:
    """What a retagging changed."""

    name: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
