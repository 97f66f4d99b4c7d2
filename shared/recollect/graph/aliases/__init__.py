"""Aliases: other names by which entities are found."""
