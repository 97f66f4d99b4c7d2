"""Synthetic talk and questions about it, by number, the same in every run and for every size.

Words are tokens of the tokenizer, with frequencies by their ranks; each thread of THREAD turns has a topic, which is a
word and its nearest neighbours in meaning, so that vectors form clusters as in real talk. One person, the owner, takes
part in every thread and speaks every other turn; the other person changes every BLOCK threads.
"""

import itertools
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from recollect.embedding import Vectors, WordLlamaEmbedder
from recollect.graph.observations.model import NewObservation

OWNER = "Mirela"
THREAD = 20
BLOCK = 25
_TOPICS = 400
_TOPIC_WORDS = 80
_DRAWS = 20
"""How many attempts a kind of question gets to produce a new one before the next kind."""
_STRIDE = 157  # prime to _TOPICS, so that threads in a row differ
_START = datetime(2020, 1, 1, 8, tzinfo=UTC)
_SYLLABLES = [a + b for a in "bdfglmnprstv" for b in ("a", "e", "i", "o", "u", "an", "el", "ir", "or", "us")]


class Spoken(Protocol):
    """Turns and questions by number, from any source."""

    def turn(self, number: int) -> NewObservation:
        """The turn of that number, from 0."""

    def questions(self, size: int, count: int, salt: str) -> list[str]:
        """So many questions on the first `size` turns, none twice; another `salt`, others."""


async def create_talk() -> "Talk":
    """Create talk, with the meanings of its words."""
    words = _vocabulary()
    return Talk(words, await WordLlamaEmbedder().embed(words))


class Talk:
    """Synthetic turns and questions, by number."""

    def __init__(self, words: Sequence[str], vectors: Vectors) -> None:
        self._words = words
        self._weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(words))))
        seeds = random.Random("topics").sample(range(200, len(words)), _TOPICS)
        nearest = np.argsort(-(vectors[seeds] @ vectors.T), axis=1, kind="stable")[:, :_TOPIC_WORDS]
        self._topics = [[words[place] for place in row] for row in nearest]

    def turn(self, number: int) -> NewObservation:
        """The turn of that number, from 0: 5 to 40 words, a minute after the one before; threads are a day apart."""
        thread, place = divmod(number, THREAD)
        at = _START + timedelta(days=thread, minutes=place)
        text = " ".join(self._said(number)).capitalize() + "."
        return NewObservation(self.speaker(number), text, thread=f"talk {thread}", said_at=at)

    def speaker(self, number: int) -> str:
        """The speaker of that turn."""
        return OWNER if number % 2 else person(number // (THREAD * BLOCK))

    def questions(self, size: int, count: int, salt: str) -> list[str]:
        """So many different questions about the first `size` turns; another `salt` gives other questions.

        All kinds in KINDS are equally frequent, as long as they have new questions: short talk has few names.
        """
        chance = random.Random(f"{salt} {size}")
        drawn: dict[str, None] = {}
        for number in range(count):
            kinds = (KINDS[(number + tried // _DRAWS) % len(KINDS)] for tried in itertools.count())
            drawn[next(text for kind in kinds if (text := kind(self, chance, size)) not in drawn)] = None
        return list(drawn)

    def fragment(self, chance: random.Random, size: int, least: int, most: int) -> str:
        """Words from one turn."""
        words = self._said(chance.randrange(size))
        return " ".join(chance.sample(words, min(len(words), chance.randint(least, most))))

    def frequent(self, chance: random.Random, count: int) -> str:
        """Some of the second hundred most frequent words; nobody searches for most of the first hundred."""
        return " ".join(chance.sample(self._words[100:200], count))

    def rare(self, chance: random.Random, count: int) -> str:
        """Some words of the rarer half."""
        return " ".join(chance.sample(self._words[len(self._words) // 2 :], count))

    def _said(self, number: int) -> list[str]:
        chance = random.Random(number)
        count = chance.randint(5, 40)
        topic = self._topics[number // THREAD * _STRIDE % _TOPICS]
        on_topic = count // 2
        words = chance.choices(self._words, cum_weights=self._weights, k=count - on_topic)
        words += chance.choices(topic, k=on_topic)
        chance.shuffle(words)
        return words


def person(number: int) -> str:
    """A different name for each number below a million."""
    rest, first = divmod(number, len(_SYLLABLES))
    third, second = divmod(rest, len(_SYLLABLES))
    return f"{_SYLLABLES[first]}{_SYLLABLES[second]}{_SYLLABLES[third]}".capitalize()


def _somebody(talk: Talk, chance: random.Random, size: int) -> str:
    return talk.speaker(chance.randrange(size))


KINDS: Sequence[Callable[[Talk, random.Random, int], str]] = (
    lambda talk, chance, size: talk.rare(chance, 1),
    lambda talk, chance, size: talk.frequent(chance, 2),
    lambda talk, chance, size: talk.fragment(chance, size, 2, 3),
    lambda talk, chance, size: talk.fragment(chance, size, 4, 8),
    lambda talk, chance, size: f"{_somebody(talk, chance, size)} {talk.fragment(chance, size, 1, 3)}",
    lambda talk, chance, size: (
        f"What did {_somebody(talk, chance, size)} say about {talk.fragment(chance, size, 3, 5)}?"
    ),
    lambda talk, chance, size: f"When did {OWNER} {talk.fragment(chance, size, 2, 4)}?",
    lambda talk, chance, size: f"{talk.frequent(chance, 1)} {talk.rare(chance, 1)} {talk.fragment(chance, size, 1, 2)}",
    lambda talk, chance, size: f"Which {talk.fragment(chance, size, 8, 11)}?",
    lambda talk, chance, size: person(chance.randrange(1 + size // (THREAD * BLOCK))),
)
"""Kinds of questions, of 1 to 12 words: rare words, frequent words, words from one turn, and names."""


def _vocabulary() -> list[str]:
    # Byte-pair merges are learned from the most frequent on: a token's rank tells how common it is.
    package = find_spec("wordllama")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).with_name("tokenizers") / "l2_supercat_tokenizer_config.json"
    ranks = Tokenizer.from_file(str(path)).get_vocab()
    words = ((token[1:], rank) for token, rank in ranks.items() if token.startswith("▁") and len(token) > 3)
    return [
        word
        for word, _ in sorted(words, key=lambda pair: pair[1])
        if word.isascii() and word.isalpha() and word.islower()
    ]
