"""Invented talk that stands beside the memories of a group in the same graph."""

from collections.abc import Iterator, Sequence
from itertools import islice

from tests.benchmarks.quality.conversations import Conversation, Labelled, Turn
from tests.benchmarks.quality.groups.notebooks import Asked, Note
from tests.benchmarks.quality.invented import invent_conversations

_CONVERSATIONS = 3
"""Enough for more than a thousand turns."""


def talk_notes(turns: int, seed: int) -> list[Note]:
    """So many turns of invented conversations, remembered as conversations are."""
    told = (
        Note(_key(talk, turn), turn.text, (turn.speaker,), thread=f"{talk.id}/{turn.session}", at=turn.at)
        for talk, turn in _turns(seed)
    )
    return list(islice(told, turns))


def talk_questions(notes: Sequence[Note], seed: int, measure: str) -> list[Asked]:
    """Questions whose whole evidence is in these notes."""
    keys = {note.key for note in notes}
    asked = (
        Asked(measure, question.text, evidence)
        for talk in invent_conversations(_CONVERSATIONS, seed)
        for question in talk.questions
        if (evidence := _evidence(talk, question)) and evidence <= keys
    )
    return list(asked)


def _turns(seed: int) -> Iterator[tuple[Conversation, Turn]]:
    for talk in invent_conversations(_CONVERSATIONS, seed):
        for turn in talk.turns:
            yield talk, turn


def _evidence(talk: Conversation, question: Labelled) -> frozenset[str]:
    return frozenset(f"{talk.id}/{turn}" for turn in question.evidence)


def _key(talk: Conversation, turn: Turn) -> str:
    return f"{talk.id}/{turn.id}"
