"""Baselines without the service: the same questions on the same texts, by words alone and by meaning alone.

The figures of the service mean little without them, because some conversations are harder than others.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from recollect.embedding import Embedder
from tests.benchmarks.quality.conversations import Conversation, Turn

Ranking = list[int]
"""A ranking: the positions of turns, best first."""

_K1, _B = 1.2, 0.75
_ENDINGS = ("ingly", "edly", "ings", "ing", "ied", "ies", "ed", "es", "ly", "s")
_COMMON = """
a an and are as at be but by did do does for from had has have he her him his how i in is it its of on or she that the
their them they this to was we were what when where which who why will with would you your
"""
_STOP_WORDS = frozenset(_COMMON.split())


def document(turn: Turn) -> str:
    """A turn as one text."""
    return f"{turn.speaker}: {turn.text}"


def rank_by_words(conversation: Conversation, limit: int) -> Callable[[str], Ranking]:
    """BM25 (Robertson et al., TREC-3) with the usual constants and light stemming."""
    texts = [Counter(_words(document(turn))) for turn in conversation.turns]
    lengths = [text.total() for text in texts]
    average = sum(lengths) / len(lengths)
    occurrences = Counter(word for text in texts for word in text)

    def weight(word: str, place: int) -> float:
        often = texts[place][word]
        rarity = math.log(1 + (len(texts) - occurrences[word] + 0.5) / (occurrences[word] + 0.5))
        return rarity * often * (_K1 + 1) / (often + _K1 * (1 - _B + _B * lengths[place] / average))

    def rank(question: str) -> Ranking:
        words = set(_words(question))
        scores = {place: sum(weight(word, place) for word in words) for place in range(len(texts))}
        return sorted((place for place in scores if scores[place] > 0), key=lambda place: -scores[place])[:limit]

    return rank


async def rank_by_meaning(
    embedder: Embedder, conversation: Conversation, questions: Sequence[str], limit: int
) -> list[Ranking]:
    """The nearest vectors of the embedder, one ranking per question."""
    turns = await embedder.embed([document(turn) for turn in conversation.turns])
    cosines = await embedder.embed(questions) @ turns.T
    return [[int(place) for place in row[:limit]] for row in np.argsort(-cosines, axis=1, kind="stable")]


def _words(text: str) -> list[str]:
    words = re.findall(r"[a-z0-9]+", text.lower().replace("'s", ""))
    return [_stem(word) for word in words if word not in _STOP_WORDS]


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending) + ("y" if ending in ("ied", "ies") else "")
    return word
