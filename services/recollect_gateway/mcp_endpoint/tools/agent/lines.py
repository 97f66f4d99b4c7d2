"""Formats stored texts for answers that consist of lines, so that no line of a text looks like a line of the answer."""

INDENT = "    "
"""The indentation of every line of a text except the first."""


def in_one_line(text: str) -> str:
    """The text with single spaces in place of all white space."""
    return " ".join(text.split())


def under_its_line(text: str) -> str:
    """The text with its line breaks, and each line after the first indented."""
    return f"\n{INDENT}".join(text.splitlines())
