"""Turns of conversations, as clients keep them: messages of model APIs, and plain text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import groupby

from recollect.text.visible import is_visible
from recollect.times import lacks_offset, parse_local, storable

MAX_TURN = 10_000
"""Characters of a memory of a conversation, at most; a longer turn becomes several."""

UNSPOKEN = frozenset({"system", "developer", "tool", "function"})
"""Roles of messages that nobody said: instructions to a model, and what its tools answered."""

USUAL_SPEAKERS = frozenset({"user", "human", "assistant", "ai", "bot", "agent", "model"}) | UNSPOKEN
"""Names, in lower case, that begin a turn of a plain text wherever they stand before a colon."""

_TIME = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2})?)?"
_SPEAKER = r"(?P<speaker>[^\W\d_][^:：\n\[\]]{0,59})(?::(?=[ \t]|$)|：)"
_LINE = re.compile(rf"^(?:\[(?P<bracketed>{_TIME})\]|(?P<plain>{_TIME}))?[ \t]*{_SPEAKER}[ \t]*")
"""The beginning of a turn of plain text: a time, where there is one, and who speaks."""

_MIN_TURNS = 2
"""Turns of a plain text that a speaker has at least, where a role does not name them: `Note:` is no speaker."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation: its speaker, its text and its time. `speaker` None: it names none."""

    text: str
    speaker: str | None = None
    at: datetime | None = None

    @property
    def is_spoken(self) -> bool:
        """Whether a speaker said it, in words."""
        return is_visible(self.text) and (self.speaker or "").lower() not in UNSPOKEN


def speaker_of(role: str | None, name: str | None) -> str | None:
    """Who speaks in a message: its name, else its role as a word, such as Assistant."""
    if role in UNSPOKEN:
        return role
    return name or (role.capitalize() if role else None)


def turns_of_text(text: str, zone: tzinfo) -> list[Turn]:
    """The turns of a plain text, each of which begins a line with `Ada:`, `[2027-01-31 12:00] Ada:` or the like.

    The speaker is given by a role, such as User, or by a name with two turns at least. Text before the first turn is
    one of its own. Times without an offset are those of `zone`.
    """
    lines = text.splitlines()
    heads = [_LINE.match(line) for line in lines]
    counts: dict[str, int] = {}
    for head in heads:
        if head is not None:
            counts[head["speaker"]] = counts.get(head["speaker"], 0) + 1
    begins = [head if head is not None and _speaks(head["speaker"], counts) else None for head in heads]
    return list(_turns_of_lines(lines, begins, zone))


def _speaks(name: str, counts: dict[str, int]) -> bool:
    return name.strip().lower() in USUAL_SPEAKERS or counts[name] >= _MIN_TURNS


def _turns_of_lines(lines: Sequence[str], begins: Sequence[re.Match[str] | None], zone: tzinfo) -> Iterator[Turn]:
    number = 0

    def turn_number(index: int) -> int:
        nonlocal number
        number += begins[index] is not None
        return number

    for _, indexes in groupby(range(len(lines)), turn_number):
        first, *others = indexes
        head = begins[first]
        turn_lines = [lines[first][head.end() :] if head else lines[first], *(lines[index] for index in others)]
        words = "\n".join(turn_lines).strip()
        if head is None:
            yield Turn(words)
        else:
            yield Turn(words, _speaker(head["speaker"]), _moment(head["bracketed"] or head["plain"], zone))


def _speaker(name: str) -> str:
    name = name.strip()
    return name.lower() if name.lower() in UNSPOKEN else name


def _moment(text: str | None, zone: tzinfo) -> datetime | None:
    """The time before a turn; None for what only looks like one, such as a 31st of February."""
    if text is None:
        return None
    try:
        at = parse_local(text, zone=zone) if lacks_offset(text) else datetime.fromisoformat(text)
        storable(at)
        return at
    except (ValueError, OverflowError):
        return None


def texts_of(turn: Turn) -> Iterator[str]:
    """What is remembered of a turn: who said it, and what; several texts of a long one."""
    if not turn.is_spoken:
        return
    speaker = f"{turn.speaker}: " if turn.speaker else ""
    for piece in _pieces(turn.text.strip(), MAX_TURN - len(speaker)):
        yield f"{speaker}{piece}"


def _pieces(text: str, longest: int) -> Iterator[str]:
    """A text in pieces, each cut after a paragraph where it has one, else after a line, a word or a character."""
    while len(text) > longest:
        ends = (text.rfind(mark, longest // 2, longest) for mark in ("\n\n", "\n", " "))
        end = next((end for end in ends if end > 0), longest)
        yield text[:end].rstrip()
        text = text[end:].lstrip()
    if text:
        yield text
