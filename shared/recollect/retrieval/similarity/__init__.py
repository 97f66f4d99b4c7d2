"""Similarity: stored memories that mean nearly the same as a new text, or as a stored one."""
