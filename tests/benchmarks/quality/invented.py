"""Synthetic conversations, with questions whose evidence is known by construction.

The same seed gives the same conversations. They are as hard as real talk: questions use other words for the same
meaning; the answer is often in the turn after the one with the words of the question; the same words occur in rumours
without the answer; the other person did the same on the same occasion; some questions need two memories that are weeks
apart; and some have no answer.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tests.benchmarks.quality.conversations import ABSTENTION, Conversation, Labelled, Turn
from tests.benchmarks.quality.lexicon import Chatter, Lexicon, Pair, read_chatter, read_lexicon
from tests.benchmarks.quality.plot import Event, Form, Plot, Visit, make_plot
from tests.benchmarks.quality.telling import Author, Line

FIRST_PERSON, TWO = "first person", "two memories"
CATEGORIES = {Form.TOLD: "one turn", Form.REPLIED: "the turn after", Form.DATED: "temporal"}

USER, ASSISTANT = "user", "assistant"

_SAME_WORDS = 0.6
"""The share of questions that name the occasion in the same words; the others use other words."""

_START = datetime(2025, 1, 7, tzinfo=UTC)


def invent_conversations(count: int, seed: int) -> list[Conversation]:
    """Create so many conversations: two of three between two people; in each third a user talks and asks as `I`."""
    lexicon, chatter = read_lexicon(), read_chatter()
    return [_invent(number, lexicon, chatter, random.Random(f"{seed} {number}")) for number in range(count)]


def _invent(number: int, lexicon: Lexicon, chatter: Chatter, chance: random.Random) -> Conversation:
    alone = number % 3 == 2
    first, second = (USER, ASSISTANT) if alone else chance.sample(lexicon.names, 2)
    plot = make_plot(lexicon, [first] if alone else [first, second], chance)
    sessions = Author(lexicon, chatter, (first, second), chance).tell(plot)
    turns, evidence = _transcript(sessions, chance)
    return Conversation(f"invented-{number + 1}", turns, list(Examiner(lexicon, plot, evidence, chance).questions()))


def _transcript(sessions: Sequence[Sequence[Line]], chance: random.Random) -> tuple[list[Turn], dict[int, set[str]]]:
    """The turns with their ids and times, and the turns that mention each event or visit (by identity)."""
    turns: list[Turn] = []
    evidence: dict[int, set[str]] = defaultdict(set)
    at = _START
    for session, lines in enumerate(sessions, start=1):
        at += timedelta(days=chance.randint(4, 15))
        start = at + timedelta(minutes=chance.randint(7 * 60, 22 * 60))
        for place, line in enumerate(lines):
            turns.append(
                Turn(f"D{session}:{place + 1}", session, start + timedelta(minutes=place), line.speaker, line.text)
            )
            if line.tells is not None:
                evidence[id(line.tells)].add(turns[-1].id)
    return turns, evidence


@dataclass(frozen=True, slots=True)
class Examiner:
    """Asks about a plot."""

    lexicon: Lexicon
    plot: Plot
    evidence: dict[int, set[str]]
    chance: random.Random

    def questions(self) -> Iterator[Labelled]:
        """All questions."""
        repeated = {id(event) for _, _, events in self.plot.repeated() for event in events}
        for event in self.plot.events:
            yield self._about_one(event, unique=id(event) not in repeated)
        for who, act, events in self.plot.repeated():
            yield self._labelled(self.chance.choice(act.all), who, TWO, *events)
        for one, other in self.plot.shared():
            yield self._labelled(self.chance.choice(one.act.all), f"both {one.who} and {other.who}", TWO, one, other)
        for visit in self.plot.visits:
            template = self.chance.choice(self.lexicon.bridge).replace("{kin}", visit.kin[1])
            yield self._labelled(template, visit.who, TWO, visit)
        for who, act, cue in self.plot.unheard:
            yield Labelled(_filled(self.chance.choice(act.asked), who, hint=self._hint(cue)), ABSTENTION, frozenset())

    def _about_one(self, event: Event, *, unique: bool) -> Labelled:
        category = CATEGORIES[event.form]
        if event.form is not Form.DATED:
            return self._labelled(
                self.chance.choice(event.act.asked).replace("{hint}", self._hint(event.cue)), event.who, category, event
            )
        answer = _unpossessed(event.answer[0])
        template = self.chance.choice(event.act.when) if unique else event.act.when[0]
        return self._labelled(
            template.replace("{answer}", answer).replace("{kind}", event.answer[1]), event.who, category, event
        )

    def _hint(self, cue: Pair) -> str:
        said, meant = cue
        return _unpossessed(said) if self.chance.random() < _SAME_WORDS else meant

    def _labelled(self, template: str, who: str, category: str, *events: Event | Visit) -> Labelled:
        evidence = frozenset().union(*(self.evidence[id(one)] for one in events))
        return Labelled(_filled(template, who), FIRST_PERSON if who == USER else category, evidence)


def _filled(template: str, who: str, hint: str = "") -> str:
    return template.replace("{who}", "I" if who == USER else who).replace("{hint}", hint)


def _unpossessed(said: str) -> str:
    """The cue without a possessive, as other people would word it."""
    return re.sub(r"^(my|our) ", "the ", said)
