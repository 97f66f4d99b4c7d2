"""Pairs of similar entities that were marked as different: they are no duplicates."""
