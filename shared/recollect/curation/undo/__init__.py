"""Undo: bring back what was before somebody's changes."""
