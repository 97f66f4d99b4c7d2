"""Texts that others wrote, in answers of lines: no text begins a line of its own and looks like what it is not."""

INDENT = "    "
"""Before every line of a text but its first."""


def in_one_line(text: str) -> str:
    """The text with single spaces in place of all white space."""
    return " ".join(text.split())


def under_its_line(text: str) -> str:
    """The text with its line breaks, and what follows one indented."""
    return f"\n{INDENT}".join(text.splitlines())
