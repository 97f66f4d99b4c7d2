"""The events in the lives of two people, and the form in which each will be mentioned in the conversation."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.benchmarks.quality.lexicon import Act, Lexicon, Pair

_SINGLE, _REPEATED = 5, 3
"""The numbers of acts of one person that happen once, and of those that happen two or three times."""

_VISITS = 3
"""The number of towns with a relative that one person visits."""


class Form(StrEnum):
    """How an event is mentioned: in one turn, in reply to a question, or with a relative time."""

    TOLD = "told"
    REPLIED = "replied"
    DATED = "dated"


@dataclass(frozen=True, slots=True)
class Event:
    """A person did something: the occasion is the cue of questions, and the outcome the answer."""

    who: str
    act: Act
    answer: Pair
    cue: Pair
    form: Form


@dataclass(frozen=True, slots=True)
class Visit:
    """A person visited a town in which a relative lives, who was mentioned on another day."""

    who: str
    kin: Pair
    town: str


@dataclass(frozen=True, slots=True)
class Plot:
    """All events of a conversation. `unheard`: person, act and cue of events that neither happen nor are mentioned."""

    events: Sequence[Event]
    visits: Sequence[Visit]
    unheard: Sequence[tuple[str, Act, Pair]]

    def repeated(self) -> Iterator[tuple[str, Act, list[Event]]]:
        """The acts that a person did more than once, with all events."""
        groups: dict[tuple[str, int], list[Event]] = defaultdict(list)
        for event in self.events:
            groups[event.who, id(event.act)].append(event)
        for (who, _), group in groups.items():
            if len(group) > 1:
                yield who, group[0].act, group

    def shared(self) -> Iterator[tuple[Event, Event]]:
        """The acts that two people did with the same outcome."""
        for place, first in enumerate(self.events):
            for second in self.events[place + 1 :]:
                if first.who != second.who and first.answer == second.answer:
                    yield first, second


def make_plot(lexicon: Lexicon, people: Sequence[str], chance: random.Random) -> Plot:
    """Create a plot. No two events of a person have the same act and cue; only shared answers occur twice."""
    answers = {id(act): chance.sample(act.answers, len(act.answers)) for act in lexicon.acts}
    events = [event for who in people for event in _events(lexicon, who, answers, chance)]
    if len(people) > 1:
        events += _shared(events, people, chance)
    towns = chance.sample(lexicon.towns, len(people) * _VISITS)
    kin = chance.sample(lexicon.kin, len(people) * _VISITS)
    visits = [Visit(people[n % len(people)], kin[n], towns[n]) for n in range(len(towns))]
    return Plot(events, visits, _unheard(lexicon, people, events, chance))


def _events(lexicon: Lexicon, who: str, answers: dict[int, list[Pair]], chance: random.Random) -> Iterator[Event]:
    for place, act in enumerate(chance.sample(lexicon.acts, _SINGLE + _REPEATED)):
        if place < _SINGLE:
            yield Event(who, act, answers[id(act)].pop(), chance.choice(act.cues), chance.choice(list(Form)))
        else:
            for cue in chance.sample(act.cues, chance.choice((2, 2, 3))):
                yield Event(who, act, answers[id(act)].pop(), cue, chance.choice(list(Form)))


def _shared(events: Sequence[Event], people: Sequence[str], chance: random.Random) -> Iterator[Event]:
    """Events in which the second person repeats two acts of the first, on other occasions."""
    done = {id(event.act) for event in events if event.who == people[1]}
    fresh = [event for event in events if event.who == people[0] and id(event.act) not in done]
    for event in {id(event.act): event for event in fresh}.values():
        cues = [cue for cue in event.act.cues if cue != event.cue]
        yield Event(people[1], event.act, event.answer, chance.choice(cues), Form.TOLD)


def _unheard(
    lexicon: Lexicon, people: Sequence[str], events: Sequence[Event], chance: random.Random
) -> list[tuple[str, Act, Pair]]:
    heard = {event.cue for event in events}
    cues = [(act, cue) for act in lexicon.acts for cue in act.cues if cue not in heard]
    return [(people[n % len(people)], act, cue) for n, (act, cue) in enumerate(chance.sample(cues, 8))]
