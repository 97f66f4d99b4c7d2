"""The part of a long question that counts: hooks of agents send whole prompts, with the question somewhere in them.

By its words, the whole is searched. What is embedded, and looked through for names, is the part that asks.
"""

import re
from itertools import chain

MAX_QUESTION = 8_000
"""Characters of a question, at most."""

MAX_PART = 1_000
"""Characters of the part that counts, at most: about as many as `minilm` reads."""

_SENTENCE = re.compile(r"[^.!?…。！？؟\n]+[.!?…。！？؟\n]*\s*")
_ASKING = re.compile(r"[?？؟]")


def part_that_counts(text: str) -> str:
    """A text of up to MAX_PART characters as it is; of a longer one, the sentences that ask, the last and the first.

    In this order as many as there is room for, then in the order of the text; without sentences, its end.
    """
    if len(text) <= MAX_PART:
        return text
    sentences = _SENTENCE.findall(text)
    indexes = range(len(sentences))
    asking = [index for index in reversed(indexes) if _ASKING.search(sentences[index])]
    ends = chain.from_iterable(zip(reversed(indexes), indexes, strict=True))
    taken: list[int] = []
    room = MAX_PART
    for index in dict.fromkeys(chain(asking, ends)):
        if len(sentences[index]) <= room:
            taken.append(index)
            room -= len(sentences[index])
    return "".join(sentences[index] for index in sorted(taken)) or text[-MAX_PART:]
