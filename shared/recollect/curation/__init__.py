"""Curation: merge, label, archive, check and undo what a graph holds."""
