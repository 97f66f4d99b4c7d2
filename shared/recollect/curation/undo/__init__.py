"""Undo: restore the state before a range of changes."""
