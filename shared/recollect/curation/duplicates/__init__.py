"""Entities that are alike: found, proposed, merged."""
