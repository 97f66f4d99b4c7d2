"""Search: recall by words and meaning, and the classic searches."""
