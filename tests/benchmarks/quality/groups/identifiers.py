"""Identifiers: among memories that look alike, asked for alone, in chatty messages and in longer prompts."""

import random
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from uuid import UUID

import msgspec

from tests.benchmarks.quality.groups.figures import Figure, by_measure, recall_at
from tests.benchmarks.quality.groups.files import read
from tests.benchmarks.quality.groups.notebooks import Answer, Asked, Note, Notebook

MEMORIES = 200
ALONE, CHATTY, PARAGRAPH, PROMPT = "alone", "in two sentences", "in 600 characters", "in 1,500 characters"

LEAST_LENGTHS = {PARAGRAPH: 600, PROMPT: 1_500}
"""The least number of characters of prompts."""

FIGURES = (Figure("recall@5", recall_at(5), 0.95),)

_ASKED_OF_A_SORT = 5


class Messages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file: templates, and the parts of which identifiers are drawn."""

    memories: list[str]
    chatty: list[str]
    prompt: list[str]
    prompt_asks: str
    parts: dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Mint:
    """Draws identifiers, none of them twice."""

    parts: dict[str, list[str]]
    chance: random.Random
    drawn: set[str] = field(default_factory=set)

    def draw(self, sort: str) -> str:
        """A new identifier of a sort: that of the slot in the templates."""
        while (identifier := self._any(sort)) in self.drawn:
            pass
        self.drawn.add(identifier)
        return identifier

    def _any(self, sort: str) -> str:
        number, pick = self.chance.randint, self._pick
        match sort:
            case "commit":
                return f"{self.chance.getrandbits(64):016x}"
            case "uuid":
                return str(UUID(int=self.chance.getrandbits(128), version=4))
            case "version":
                return f"v{number(1, 9)}.{number(0, 30)}.{number(0, 20)}{self.chance.choice(('', '-rc1', '-rc2'))}"
            case "path":
                return f"src/{pick('folders')}/{pick('files')}_{number(1, 99)}.{pick('endings')}:{number(1, 900)}"
            case "host":
                return f"{pick('hosts')}-{number(1, 40):02}.{pick('sites')}.example.net"
            case "ticket":
                return f"{pick('projects')}-{number(100, 9999)}"
            case "error":
                return f"{pick('errors')}{number(1000, 99999)}"
            case "symbol":
                return f"{pick('verbs')}{pick('nouns')}{pick('tails')}{self.chance.choice(string.ascii_uppercase)}"
        raise ValueError(f"{sort} is no sort of identifier")

    def _pick(self, part: str) -> str:
        return self.chance.choice(self.parts[part])


@dataclass(frozen=True, slots=True)
class Identifier:
    """An identifier with its sort, and the key of the note that holds it."""

    sort: str
    text: str
    note: str


def by_way(answers: Sequence[Answer]) -> Mapping[str, Sequence[Answer]]:
    """The answers by the way of asking, and for chatty messages by the sort of identifier, too."""
    chatty = [answer for answer in answers if answer.asked.measure.startswith(CHATTY)]
    grouped = by_measure(answers)
    return {ALONE: grouped[ALONE], CHATTY: chatty, PARAGRAPH: grouped[PARAGRAPH], PROMPT: grouped[PROMPT]} | grouped


def open_notebooks(seed: int, _: date) -> list[Notebook]:
    """One notebook; the same identifiers are asked for in each way."""
    messages, chance = read("identifiers", Messages), random.Random(f"identifiers {seed}")
    mint = Mint(messages.parts, chance)
    notes: list[Note] = []
    drawn: dict[str, list[Identifier]] = {}
    for index in range(MEMORIES):
        text, identifiers = _fill(messages.memories[index % len(messages.memories)], mint)
        notes.append(Note(str(index), text))
        for sort, identifier in identifiers.items():
            drawn.setdefault(sort, []).append(Identifier(sort, identifier, str(index)))
    asked = [identifier for sort in sorted(drawn) for identifier in chance.sample(drawn[sort], _ASKED_OF_A_SORT)]
    questions = [question for identifier in asked for question in _questions(identifier, messages, chance)]
    return [Notebook(f"identifiers-{seed}", [notes], questions)]


def _fill(template: str, mint: Mint) -> tuple[str, dict[str, str]]:
    identifiers = {sort: mint.draw(sort) for sort in re.findall(r"\{(\w+)\}", template)}
    return template.format(**identifiers), identifiers


def _questions(identifier: Identifier, messages: Messages, chance: random.Random) -> Iterator[Asked]:
    wanted = frozenset({identifier.note})
    yield Asked(ALONE, identifier.text, wanted)
    for message in messages.chatty:
        yield Asked(f"{CHATTY}, {identifier.sort}", message.format(id=identifier.text), wanted)
    for way, length in LEAST_LENGTHS.items():
        yield Asked(way, _prompt(identifier.text, length, messages, chance), wanted)


def _prompt(identifier: str, length: int, messages: Messages, chance: random.Random) -> str:
    """Sentences in any order, of `length` characters or a little more, with the one that asks somewhere among them."""
    sentences, asks = chance.sample(messages.prompt, len(messages.prompt)), messages.prompt_asks.format(id=identifier)
    while len(" ".join([*sentences[:-1], asks])) >= length:
        sentences.pop()
    sentences.insert(chance.randint(0, len(sentences)), asks)
    return " ".join(sentences)
