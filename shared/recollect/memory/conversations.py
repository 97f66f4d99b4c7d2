"""Conversations as memories: a turn becomes a fact in the thread of its conversation, `Ada: I moved to Berlin`.

It is the same memory each time it is sent, so a client may send a conversation again with the turns that it has gained.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from recollect.memory.model import NewMemory
from recollect.text.turns import Turn, texts_of
from recollect.times import offset_minutes, storable


def memories_of(
    turns: Iterable[Turn], thread: str, *, tags: Sequence[str] = (), source: str | None = None
) -> list[list[NewMemory]]:
    """The memories of each turn, in order: usually one, several for a long turn, and none for a turn without text.

    A turn that repeats an earlier one has the same memory as that one.
    """
    first_said: dict[str, datetime | None] = {}

    def memory(text: str, turn: Turn) -> NewMemory:
        at = first_said.setdefault(text, turn.at)
        return NewMemory(
            text,
            thread=thread,
            at=None if at is None else storable(at),
            said_offset=None if at is None else offset_minutes(at),
            tags=tuple(tags),
            source=source,
        )

    return [[memory(text, turn) for text in texts_of(turn)] for turn in turns]
