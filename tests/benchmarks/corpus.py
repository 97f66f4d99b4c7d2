"""Synthetic entities and questions, the same in every run, with word frequencies as uneven as in any language.

Entity i has a name of two words and its number, one of a few kinds, one observation of a dozen words, and a relation to
entity i/2. The first 1,000 also contain a marker, a different word for every ten of them: a search for it finds ten
entities in a graph of any size, while its trigrams occur in more and more texts.
"""

import itertools
import random
from collections.abc import Iterator

from recollect.graph.entities.model import NewEntity
from recollect.graph.relations.model import NewRelation

MATCHES = 10
"""The number of entities with the same marker."""

_SYLLABLES = [a + b + c for a in "bdfglmnprstv" for b in "aeiou" for c in ("", "n", "r", "s")]
_KINDS = ("person", "place", "project", "tool", "event", "book", "song", "team")
_WORDS = 4_000
_MARKERS = 100

LEAST = MATCHES * _MARKERS
"""The number of entities of the smallest graph with all markers."""


class Corpus:
    """The texts, by number."""

    def __init__(self) -> None:
        chance = random.Random(20260728)
        words: dict[str, None] = {}
        while len(words) < _WORDS + _MARKERS:
            words["".join(chance.choices(_SYLLABLES, k=chance.choice((2, 2, 3))))] = None
        vocabulary = list(words)
        self._words, self._markers = vocabulary[:_WORDS], ["".join(p) for p in _pairs(vocabulary[_WORDS:])]
        self._weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(_WORDS)))
        self._serial = itertools.count(1)

    def entity(self, number: int) -> NewEntity:
        """The entity of that number, from 0."""
        chance = random.Random(number)
        marker = [self.marker(number // MATCHES)] if number < LEAST else []
        sentence = " ".join([*self._sample(chance, 12), *marker])
        return NewEntity(self.name(number), _KINDS[number % len(_KINDS)], (sentence.capitalize() + ".",))

    def name(self, number: int) -> str:
        """The name of entity `number`."""
        first, second = self._sample(random.Random(f"name {number}"), 2)
        return f"{first} {second} {number}"

    def relation(self, number: int) -> NewRelation:
        """The relation from entity `number` (1 or more)."""
        return NewRelation(self.name(number), self.name(number // 2), "belongs_to")

    def marker(self, number: int) -> str:
        """A word in exactly MATCHES entities."""
        return self._markers[number % _MARKERS]

    def question(self, number: int) -> str:
        """A question of four words from the observation of entity `number`."""
        words = self.entity(number).observations[0].removesuffix(".").lower().split()
        return " ".join(random.Random(f"question {number}").sample(words, 4))

    def new_entity(self) -> dict[str, object]:
        """A new entity, as an argument of a tool, different each time."""
        serial = next(self._serial)
        chance = random.Random(f"new {serial}")
        first, second = self._sample(chance, 2)
        return {
            "name": f"{first} {second} new {serial}",
            "entityType": chance.choice(_KINDS),
            "observations": [self.new_sentence()],
        }

    def new_sentence(self) -> str:
        """A sentence of a dozen words, different each time."""
        serial = next(self._serial)
        return f"{' '.join(self._sample(random.Random(f'sentence {serial}'), 12))} {serial}."

    def _sample(self, chance: random.Random, count: int) -> list[str]:
        return chance.choices(self._words, cum_weights=self._weights, k=count)


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    # Two words in one: no text but a marker holds the two without a space between.
    return zip(words, [*words[1:], words[0]], strict=True)
