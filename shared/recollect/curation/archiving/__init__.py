"""Archiving: keep entities that are no longer used out of recall."""
