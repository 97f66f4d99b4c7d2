"""What happens to two people, before anybody has told it: events, and in which way each will be told."""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.benchmarks.quality.lexicon import Act, Lexicon, Pair

_SINGLE, _REPEATED = 5, 3
"""Acts of one person that happen once, and those that happen twice or three times."""

_VISITS = 3
"""Towns that one person goes to where somebody of the family lives."""


class Form(StrEnum):
    """How an event is told: in one turn, in answer to a question, with a time that is relative to the telling."""

    TOLD = "told"
    REPLIED = "replied"
    DATED = "dated"


@dataclass(frozen=True, slots=True)
class Event:
    """Somebody did something: on what occasion (the cue), and with what outcome (the answer)."""

    who: str
    act: Act
    answer: Pair
    cue: Pair
    form: Form


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody was in a town, where somebody of the family lives, as was told another day."""

    who: str
    kin: Pair
    town: str


@dataclass(frozen=True, slots=True)
class Plot:
    """All that happens in a conversation. `unheard`: who, act and cue of what never did, nor was spoken of."""

    events: Sequence[Event]
    visits: Sequence[Visit]
    unheard: Sequence[tuple[str, Act, Pair]]

    def repeated(self) -> Iterator[tuple[str, Act, list[Event]]]:
        """What somebody did more than once, with every time."""
        groups: dict[tuple[str, int], list[Event]] = defaultdict(list)
        for event in self.events:
            groups[event.who, id(event.act)].append(event)
        for (who, _), group in groups.items():
            if len(group) > 1:
                yield who, group[0].act, group

    def shared(self) -> Iterator[tuple[Event, Event]]:
        """What two people did with the same outcome."""
        for place, first in enumerate(self.events):
            for second in self.events[place + 1 :]:
                if first.who != second.who and first.answer == second.answer:
                    yield first, second


def make_plot(lexicon: Lexicon, people: Sequence[str], chance: random.Random) -> Plot:
    """A plot for those people. No two events of one have the same act and cue; only shared answers occur twice."""
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
    """The second does two of the things that the first did, on other occasions."""
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
