"""Formats lists of what was not found for the text of an answer, so that they stay short whatever the call named."""

from collections.abc import Mapping, Sequence

MAX_LISTED = 20
"""The maximum number of items that a sentence names."""

MAX_CHARACTERS = 120
"""The maximum length of one item in a sentence, in characters."""


def list_briefly(items: Sequence[str]) -> str:
    """Format items as one line: the first MAX_LISTED of them, each shortened, and the number of the others."""
    shown = ", ".join(map(_shortened, items[:MAX_LISTED]))
    more = len(items) - MAX_LISTED
    return shown if more <= 0 else f"{shown} and {more} more"


def describe_forms(forms: Mapping[str, Sequence[str]]) -> str:
    """Format the end of a sentence that lists all forms of names that stood for several; empty if none did."""
    several = dict.fromkeys(repr(form) for named in forms.values() if len(named) > 1 for form in named)
    return f". In all forms of a name: {list_briefly(list(several))}" if several else ""


def _shortened(item: str) -> str:
    line = " ".join(item.split())
    return line if len(line) <= MAX_CHARACTERS else f"{line[: MAX_CHARACTERS - 1]}…"
