"""The words of conversations: `lexicon.toml` (topics of questions) and `chatter.toml` (small talk)."""

import random
import re
import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

Pair = tuple[str, str]
"""A cue as it is said, and another wording of it for questions."""

T = TypeVar("T")


class Act(msgspec.Struct, frozen=True):
    """Something that people do: templates, and the words that fill them. See `lexicon.toml`."""

    said: list[str]
    prompt: list[str]
    reply: list[str]
    asked: list[str]
    when: list[str]
    all: list[str]
    rumour: list[str]
    answers: list[Pair]
    cues: list[Pair]


class Lexicon(msgspec.Struct, frozen=True):
    """The topics of questions."""

    names: list[str]
    towns: list[str]
    kin: list[Pair]
    lives: list[str]
    went: list[str]
    bridge: list[str]
    times: list[str]
    acts: list[Act]


class Chatter(msgspec.Struct, frozen=True):
    """Small talk, about which nobody asks."""

    turns: list[str]
    short: list[str]
    openers: list[str]
    greetings: list[str]
    farewells: list[str]
    lists: dict[str, list[str]]

    def sentence(self, chance: random.Random) -> str:
        """A sentence of small talk."""
        return re.sub(r"\{(\w+)\}", lambda slot: chance.choice(self.lists[slot[1]]), chance.choice(self.turns))


def read_lexicon() -> Lexicon:
    """Read the lexicon from its file."""
    return _read("lexicon.toml", Lexicon)


def read_chatter() -> Chatter:
    """Read the small talk from its file."""
    return _read("chatter.toml", Chatter)


def _read(name: str, type_: type[T]) -> T:
    return msgspec.convert(tomllib.loads(Path(__file__).with_name(name).read_text()), type_)
