"""Answers that stay open."""
