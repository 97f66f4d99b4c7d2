"""Bounds of hierarchies."""

MAX_LEVELS = 1_000
"""Levels that are walked up or down, at most."""

MAX_PAGE = 1_000
"""Entities of one answer, at most."""
