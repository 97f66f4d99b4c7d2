"""Turns a plot into sessions of lines, with small talk and rumours in between."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.benchmarks.quality.lexicon import Chatter, Lexicon
from tests.benchmarks.quality.plot import Event, Form, Plot, Visit

SESSIONS = 18
_TURNS = 24
"""The minimum number of turns per session."""

_RUMOURS = 0.8
"""The share of events whose words occur on another day in a rumour without the answer."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of one speaker; `tells`: the event or visit for which it is evidence, if any."""

    speaker: str
    text: str
    tells: Event | Visit | None = None


Exchange = Sequence[Line]
"""Lines that belong together, in order."""


@dataclass(frozen=True, slots=True)
class Author:
    """Writes the lines of the two people."""

    lexicon: Lexicon
    chatter: Chatter
    speakers: tuple[str, str]
    chance: random.Random

    def tell(self, plot: Plot) -> list[list[Line]]:
        """The lines of each session."""
        sessions: list[list[Exchange]] = [[] for _ in range(SESSIONS)]
        for exchange in self._exchanges(plot):
            self.chance.choice(sessions).append(exchange)
        for visit in plot.visits:  # Where somebody lives and that one was there are told on different days.
            first, second = self.chance.sample(sessions, 2)
            first.append(self._visited(visit, self.lexicon.lives))
            second.append(self._visited(visit, self.lexicon.went))
        return [self._session(exchanges) for exchanges in sessions]

    def _exchanges(self, plot: Plot) -> Iterator[Exchange]:
        for event in plot.events:
            yield self._replied(event) if event.form is Form.REPLIED else self._told(event)
            if self.chance.random() < _RUMOURS:
                text = self._filled(self.chance.choice(event.act.rumour), event)
                yield [Line(self.chance.choice(self.speakers), self._padded(f"{_capital(text)}."))]

    def _told(self, event: Event) -> Exchange:
        text = self._opened(self._filled(self.chance.choice(event.act.said), event), self._time(event))
        return [Line(event.who, self._padded(text), event), self._short(event.who)]

    def _replied(self, event: Event) -> Exchange:
        prompt = _capital(self._filled(self.chance.choice(event.act.prompt), event))
        reply = _capital(self._filled(self.chance.choice(event.act.reply), event))
        return [Line(self._other(event.who), prompt), Line(event.who, self._padded(reply, before=False), event)]

    def _visited(self, visit: Visit, templates: Sequence[str]) -> Exchange:
        text = self.chance.choice(templates).format(kin=visit.kin[0], town=visit.town)
        return [Line(visit.who, self._padded(self._opened(text, None)), visit), self._short(visit.who)]

    def _session(self, exchanges: Sequence[Exchange]) -> list[Line]:
        first, second = self.chance.sample(self.speakers, 2)
        lines = [self._line(first, self.chatter.greetings, second), self._line(second, self.chatter.greetings, first)]
        talk = [*exchanges, *self._small_talk(_TURNS - sum(len(exchange) for exchange in exchanges))]
        self.chance.shuffle(talk)
        lines += [line for exchange in talk for line in exchange]
        return [*lines, self._line(first, self.chatter.farewells, second)]

    def _small_talk(self, turns: int) -> Iterator[Exchange]:
        for _ in range(turns // 2):
            speaker = self.chance.choice(self.speakers)
            sentences = [self.chatter.sentence(self.chance) for _ in range(self.chance.choice((1, 1, 2, 3)))]
            yield [Line(speaker, " ".join(sentences)), self._short(speaker)]

    def _short(self, to: str) -> Line:
        reaction = self.chance.choice(self.chatter.short)
        return Line(self._other(to), self._padded(reaction, before=False))

    def _padded(self, text: str, *, before: bool = True) -> str:
        """The text, sometimes with a sentence of small talk added."""
        sentence = self.chatter.sentence(self.chance)
        match self.chance.randrange(4):
            case 0:
                return f"{text} {sentence}"
            case 1 if before:
                return f"{sentence} {text}"
        return text

    def _opened(self, text: str, time: str | None) -> str:
        opener = self.chance.choice(self.chatter.openers)
        dated = text if time is None else self.chance.choice((f"{text}, {time}", f"{time}, {text}"))
        return f"{_capital(opener + dated)}."

    def _time(self, event: Event) -> str | None:
        return self.chance.choice(self.lexicon.times) if event.form is Form.DATED else None

    def _filled(self, template: str, event: Event) -> str:
        return template.format(answer=event.answer[0], cue=event.cue[0])

    def _line(self, speaker: str, templates: Sequence[str], to: str) -> Line:
        return Line(speaker, _capital(self.chance.choice(templates).format(name=to)))

    def _other(self, speaker: str) -> str:
        return self.speakers[1] if speaker == self.speakers[0] else self.speakers[0]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
