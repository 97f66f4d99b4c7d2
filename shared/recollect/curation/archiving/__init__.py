"""Entities that are no longer used leave recall."""
