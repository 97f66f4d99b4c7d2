"""How one text became another, word by word."""

import re
from collections.abc import Iterable

from rapidfuzz.distance import Indel

from recollect.fairness.computing import collect_yielding

MAX_WORDS = 2_000
"""Words of a text that is compared. Longer ones are shown one after the other."""

MAX_PAGE_WORDS = 20_000
"""Words of all texts of a page that are compared: each that changed is an element of the page."""

MAX_SHOWN = 10_000
"""Characters of a text that are shown next to others."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
Part = tuple[str, str]
"""`same`, `added` or `removed`, and a piece of text."""


async def diffs_of(pairs: Iterable[tuple[str, str]]) -> list[list[Part]]:
    """The pieces of each pair of texts, an old one and a new one. Texts past the bounds of a page are cut, or follow
    one another."""
    words = 0

    def pieces(pair: tuple[str, str]) -> list[Part]:
        nonlocal words
        old, new = map(_cut, pair)
        words += len(_WORDS.findall(old)) + len(_WORDS.findall(new))
        return diff_words(old, new) if words <= MAX_PAGE_WORDS else _apart(old, new)

    return await collect_yielding(map(pieces, pairs))


def diff_words(old: str, new: str) -> list[Part]:
    """The pieces of both texts in order."""
    if old == new:
        return [("same", new)]
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    if max(len(before), len(after)) > MAX_WORDS:
        return _apart(old, new)
    return _joined(_changes(before, after))


def _changes(before: list[str], after: list[str]) -> Iterable[Part]:
    for change in Indel.opcodes(before, after):
        removed = "".join(before[change.src_start : change.src_end])
        added = "".join(after[change.dest_start : change.dest_end])
        if change.tag == "equal":
            yield "same", added
        elif change.tag == "delete":
            yield "removed", removed
        else:
            yield "added", added


def _joined(changes: Iterable[Part]) -> list[Part]:
    """The pieces, with all that is removed or added at one position in one piece each, the former first.

    White space between changes is one of them: so are words that changed side by side.
    """
    parts: list[Part] = []
    removed, added, between = "", "", ""
    for change, text in (*changes, ("same", "end")):
        if change == "same":
            if text.isspace() and (removed or added):
                between += text
                continue
            parts += [part for part in (("removed", removed), ("added", added), ("same", between + text)) if part[1]]
            removed = added = between = ""
            continue
        removed, added, between = removed + between, added + between, ""
        removed, added = (removed + text, added) if change == "removed" else (removed, added + text)
    return _without_end(parts)


def _without_end(parts: list[Part]) -> list[Part]:
    """The pieces without the mark after the last one."""
    last = parts.pop()[1].removesuffix("end")
    return [*parts, ("same", last)] if last else parts


def _apart(old: str, new: str) -> list[Part]:
    return [part for part in (("removed", old), ("added", new)) if part[1]]


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
