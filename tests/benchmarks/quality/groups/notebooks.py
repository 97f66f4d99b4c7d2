"""What a group asks for: a notebook of memories, questions about them, and what came."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Note:
    """A memory to remember. `key` identifies it in its notebook; the rest are arguments of `remember`."""

    key: str
    text: str
    about: Sequence[str] = ()
    tags: Sequence[str] = ()
    kind: str | None = None
    importance: float | None = None
    thread: str | None = None
    at: datetime | None = None

    def item(self) -> dict[str, Any]:
        """The item of `remember`: what is set."""
        values = {
            "text": self.text,
            "about": list(self.about),
            "tags": list(self.tags),
            "kind": self.kind,
            "importance": self.importance,
            "thread": self.thread,
            "at": self.at and self.at.isoformat(),
        }
        return {name: value for name, value in values.items() if value not in (None, [])}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a notebook.

    `measure`: what it counts for, a line of the report. `wanted`: keys of the notes that answer it (empty: nothing
    does). `rival`: the note that must come later, if at all. `tolerated`: notes that may come and count neither way.
    `filters`: further arguments of `recall`.
    """

    measure: str
    query: str
    wanted: frozenset[str] = frozenset()
    rival: str | None = None
    tolerated: frozenset[str] = frozenset()
    filters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Notebook:
    """Memories in a graph of their own, and questions. `calls`: the calls of `remember`, one after the other."""

    id: str
    calls: Sequence[Sequence[Note]]
    questions: Sequence[Asked]

    def notes(self) -> Iterator[Note]:
        """All notes, in order."""
        for call in self.calls:
            yield from call


@dataclass(frozen=True, slots=True)
class Answer:
    """What came for a question: keys of notes, best first, or that the call was refused."""

    notebook: str
    asked: Asked
    ranked: Sequence[str]
    refused: bool = False
