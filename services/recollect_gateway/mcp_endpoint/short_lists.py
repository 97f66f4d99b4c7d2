"""Lists of what was not found, in the text of an answer: short, whatever the call named."""

from collections.abc import Mapping, Sequence

MAX_LISTED = 20
"""Items that a sentence names, at most."""

MAX_CHARACTERS = 120
"""Characters of one of them, at most."""


def list_briefly(items: Sequence[str]) -> str:
    """The items in one line, the first of many, each shortened; and how many more there are."""
    shown = ", ".join(map(_shortened, items[:MAX_LISTED]))
    more = len(items) - MAX_LISTED
    return shown if more <= 0 else f"{shown} and {more} more"


def describe_forms(forms: Mapping[str, Sequence[str]]) -> str:
    """What a sentence adds where a name that a call gave stood for several: all of them, quoted; else nothing."""
    several = dict.fromkeys(repr(form) for named in forms.values() if len(named) > 1 for form in named)
    return f". In all forms of a name: {list_briefly(list(several))}" if several else ""


def _shortened(item: str) -> str:
    line = " ".join(item.split())
    return line if len(line) <= MAX_CHARACTERS else f"{line[: MAX_CHARACTERS - 1]}…"
