"""How one text became another, word by word."""

import re
from difflib import SequenceMatcher

MAX_WORDS = 2_000
"""Words of a text that is compared: comparing takes a time of the square of them. Longer ones are shown one after the
other."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
Part = tuple[str, str]
"""`same`, `added` or `removed`, and a piece of text."""


def diff_words(old: str, new: str) -> list[Part]:
    """The pieces of both texts in order."""
    if old == new:
        return [("same", new)]
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > MAX_WORDS:
        return [("removed", old), ("added", new)]
    parts: list[Part] = []
    for change, start, end, new_start, new_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        removed, added = "".join(before[start:end]), "".join(after[new_start:new_end])
        pieces = [("same", added)] if change == "equal" else [("removed", removed), ("added", added)]
        parts += [piece for piece in pieces if piece[1]]
    return parts
