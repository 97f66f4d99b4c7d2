"""Lists of what was not found, in the text of an answer: short, whatever the call named."""

from collections.abc import Sequence

MAX_LISTED = 20
"""Items that a sentence names, at most."""

MAX_CHARACTERS = 120
"""Characters of one of them, at most."""


def listed(items: Sequence[str]) -> str:
    """The items in one line, the first of many, each shortened; and how many more there are."""
    shown = ", ".join(map(_shortened, items[:MAX_LISTED]))
    more = len(items) - MAX_LISTED
    return shown if more <= 0 else f"{shown} and {more} more"


def _shortened(item: str) -> str:
    line = " ".join(item.split())
    return line if len(line) <= MAX_CHARACTERS else f"{line[: MAX_CHARACTERS - 1]}…"
