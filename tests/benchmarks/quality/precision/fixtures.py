"""The beliefs and cases of PrecisionMemBench, as its repository has them in `fixtures`.

https://github.com/tenurehq/precisionMemBench (MIT). One thing is left out, in which no recall has a part: the prelude
about the user, which its harness adds by itself and checks in some cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

USER = "test-user"
"""The user of cases that name none."""

MOST = 20
"""The number of beliefs that a case asks for, unless it says so."""

MOST_QUESTIONS = 15

_OPEN_QUESTION = "open_question"
_RELATION = "relation"

T = TypeVar("T")


class Belief(msgspec.Struct, frozen=True):
    """A belief about a user. `superseded_by` and `resolved_at`: it no longer holds."""

    id: str = msgspec.field(name="_id")
    user_id: str
    type: str
    canonical_name: str
    content: str
    scope: list[str]
    aliases: list[str] = []
    why_it_matters: str = ""
    pinned: bool = False
    superseded_by: str | None = None
    resolved_at: str | None = None
    participants: list[str] = []

    @property
    def text(self) -> str:
        """The text that every memory system is given."""
        parts = (self.canonical_name, *self.aliases, self.content, self.why_it_matters)
        return " ".join(part for part in parts if part)

    @property
    def holds(self) -> bool:
        """Whether it still holds."""
        return self.superseded_by is None and self.resolved_at is None

    @property
    def is_question(self) -> bool:
        """Whether it is an open question, which the harness adds by itself."""
        return self.type == _OPEN_QUESTION

    @property
    def relates(self) -> Sequence[str]:
        """The beliefs that a relation is about, which the harness adds to it; none for others."""
        return self.participants if self.type == _RELATION else ()

    def is_of(self, user: str, scopes: Sequence[str]) -> bool:
        """Whether it is this user's, and in one of these scopes."""
        return self.user_id == user and not set(self.scope).isdisjoint(scopes)


class Wanted(msgspec.Struct, frozen=True, rename="camel"):
    """What is wanted of one part of the context. `should_only_include`: this and nothing else."""

    must_include: list[str] = []
    must_exclude: list[str] = []
    should_include: list[str] = []
    should_only_include: list[str] | None = None


class Noise(msgspec.Struct, frozen=True, rename="camel"):
    """Beliefs of other topics of the session."""

    must_not_surface: list[str]


class Expected(msgspec.Struct, frozen=True, rename="camel"):
    """What a case expects of the context."""

    relevant_beliefs: Wanted = Wanted()
    pinned_facts: Wanted = Wanted()
    open_questions: Wanted = Wanted()
    noise_check: Noise = Noise([])


class Budget(msgspec.Struct, frozen=True, rename="camel"):
    """How many beliefs a case asks for, pinned ones included."""

    max_beliefs: int = MOST


class Case(msgspec.Struct, frozen=True, rename="camel"):
    """A question of a user in some scopes."""

    case_id: str
    scope: list[str]
    query: str
    expect: Expected
    user_id: str = USER
    budget: Budget = Budget()


class NewAliases(msgspec.Struct, frozen=True, rename="camel"):
    """More names of a belief."""

    belief_id: str
    add_aliases: list[str] = []


class Turn(msgspec.Struct, frozen=True, rename="camel"):
    """A message of a session, and what is learned after it."""

    turn_index: int
    scope: list[str]
    user_message: str
    expect: Expected
    create_belief_at_turn: Belief | None = None
    update_belief_at_turn: NewAliases | None = None


class Session(msgspec.Struct, frozen=True, rename="camel"):
    """Messages, one after the other."""

    case_id: str
    turns: list[Turn]

    def case(self, turn: Turn) -> Case:
        """The question that a turn asks."""
        return Case(f"{self.case_id} {turn.turn_index}", turn.scope, turn.user_message, turn.expect)


@dataclass(frozen=True, slots=True)
class Fixtures:
    """The whole benchmark."""

    beliefs: Sequence[Belief]
    cases: Sequence[Case]
    sessions: Sequence[Session]


def read_fixtures(folder: Path) -> Fixtures:
    """Read the folder `fixtures` of a copy of the repository. Raises OSError, msgspec.MsgspecError."""
    return Fixtures(
        _read(folder / "beliefs.seed.json", list[Belief]),
        _read(folder / "retrieval.cases.json", list[Case]),
        _read(folder / "session-retrieval.cases.json", list[Session]),
    )


def _read(path: Path, type_: type[T]) -> T:
    return msgspec.json.decode(path.read_bytes(), type=type_)
