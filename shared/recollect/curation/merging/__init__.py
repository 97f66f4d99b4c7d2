"""Merging: several entities become one."""
