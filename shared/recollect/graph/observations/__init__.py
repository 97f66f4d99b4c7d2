"""Observations: short statements about entities."""
