"""Whose call is next, and how much of a process one tenant may use."""
