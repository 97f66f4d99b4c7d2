"""Recall: memories by words, meaning and what surrounds them."""
