"""Entities that look alike and are different, as somebody said: they are no duplicates."""
