"""Owners ask for the deletion of their organisation: it is deleted a week later, unless one takes that back."""
