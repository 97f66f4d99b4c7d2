"""Merging: two or more entities become one, with their observations and relations."""
