"""Distilling facts from conversations, against a real PostgreSQL and a model server that speaks the real protocol."""
