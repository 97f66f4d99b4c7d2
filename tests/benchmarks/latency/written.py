"""Turns and questions from a file with texts of people, in threads.

A line is a turn, an empty line ends a thread. Each thread is between two people; how often a person takes part is as
unevenly distributed as names in real texts (Zipf). Nothing of the file is kept.
"""

import random
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path

from recollect.graph.observations.model import NewObservation
from tests.benchmarks.latency.talk import person

_PEOPLE = 2_000
_TRIES = 2_000
_START = datetime(2020, 1, 1, 8, tzinfo=UTC)
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")


class Written:
    """Turns and questions from a file, by number. Raises ValueError if it has none."""

    def __init__(self, text: str) -> None:
        turns = [(place, line) for place, thread in enumerate(_threads(text)) for line in thread]
        if not turns:
            raise ValueError("the text has no lines")
        self._texts = [line for _, line in turns]
        self._threads = [place for place, _ in turns]
        self._starts = [n for n, place in enumerate(self._threads) if n == 0 or place != self._threads[n - 1]]
        self._common, self._names = _common_words_and_names(self._texts)

    def __len__(self) -> int:
        """The number of turns."""
        return len(self._texts)

    def turn(self, number: int) -> NewObservation:
        """The turn of that number, from 0: a minute after the one before; threads are an hour apart."""
        thread = self._threads[number]
        place = number - self._starts[bisect_right(self._starts, number) - 1]
        people = _people_of(thread)
        at = _START + timedelta(hours=thread, minutes=place)
        return NewObservation(people[place % 2], self._texts[number], thread=f"text {thread}", said_at=at)

    def questions(self, size: int, count: int, salt: str) -> list[str]:
        """So many different questions about the first `size` turns, all kinds equally; another `salt` gives others.

        Raises ValueError if so few turns do not have so many questions.
        """
        chance = random.Random(f"{salt} {size}")
        drawn: dict[str, None] = {}
        for number in range(count):
            kind = _KINDS[number % len(_KINDS)]
            asked = (kind(self, chance, chance.randrange(size)) for _ in range(_TRIES))
            new = next((text for text in asked if text is not None and text not in drawn), None)
            if new is None:
                raise ValueError(f"{size} turns have not {count} questions of each kind")
            drawn[new] = None
        return list(drawn)

    def name(self, chance: random.Random, number: int) -> str | None:
        """A name in the turn, so that frequent names are frequent questions."""
        told = [word for word in _WORD.findall(self._texts[number])[1:] if word in self._names]
        return chance.choice(told) if told else None

    def words(self, chance: random.Random, number: int, least: int, most: int) -> str | None:
        """Words of the turn in their order, without the most common ones."""
        told = [word for word in _WORD.findall(self._texts[number]) if word.lower() not in self._common]
        count = chance.randint(least, most)
        places = sorted(chance.sample(range(len(told)), count)) if len(told) >= count else []
        return " ".join(told[place] for place in places) or None

    def about_somebody(self, chance: random.Random, number: int) -> str | None:
        """A question about what a person said about a topic."""
        name, words = self.name(chance, number), self.words(chance, number, 2, 4)
        return f"What did {name} say about {words}?" if name and words else None


_KINDS: Sequence[Callable[[Written, random.Random, int], str | None]] = (
    lambda text, chance, number: text.name(chance, number),
    lambda text, chance, number: text.words(chance, number, 1, 2),
    lambda text, chance, number: text.words(chance, number, 3, 5),
    lambda text, chance, number: text.about_somebody(chance, number),
    lambda text, chance, number: text.words(chance, number, 8, 11),
)


def read_written(path: Path) -> Written:
    """Read a text file, or all files `*.txt` of a folder, in the order of their names. Raises ValueError."""
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    return Written("\n\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files))


def _threads(text: str) -> list[list[str]]:
    parts = re.split(r"\n\s*\n", text)
    return [lines for part in parts if (lines := [line.strip() for line in part.splitlines() if line.strip()])]


def _common_words_and_names(texts: Sequence[str]) -> tuple[set[str], set[str]]:
    """The hundred most frequent words (at most a tenth of all), and words that mostly have a capital within turns."""
    small, capital = Counter[str](), Counter[str]()
    for text in texts:
        for word in _WORD.findall(text)[1:]:
            (capital if word[0].isupper() else small)[word] += 1
    names = {word for word, count in capital.items() if len(word) > 2 and count > 2 * small[word.lower()]}
    return {word for word, _ in small.most_common(min(100, len(small) // 10))}, names


_WEIGHTS = list(accumulate(1 / (rank + 1) for rank in range(_PEOPLE)))


def _people_of(thread: int) -> list[str]:
    chance = random.Random(f"people of {thread}")
    drawn: dict[str, None] = {}
    while len(drawn) < 2:
        drawn[person(bisect_right(_WEIGHTS, chance.random() * _WEIGHTS[-1]))] = None
    return list(drawn)
