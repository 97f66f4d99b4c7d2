"""Retention: what expires, what of the history is kept, and what is erased."""
