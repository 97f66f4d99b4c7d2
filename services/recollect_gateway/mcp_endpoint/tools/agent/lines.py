"""Stored texts in answers that consist of lines: no text begins a line of its own, where it could pass for our own."""

INDENT = "    "
"""What precedes every line of a text but its first."""


def in_one_line(text: str) -> str:
    """The text with single spaces in place of all white space."""
    return " ".join(text.split())


def under_its_line(text: str) -> str:
    """The text with its line breaks, and each line after the first indented."""
    return f"\n{INDENT}".join(text.splitlines())
