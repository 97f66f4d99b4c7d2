"""Retention: what is removed for good, by compaction when its time is over and by erasure at once."""
