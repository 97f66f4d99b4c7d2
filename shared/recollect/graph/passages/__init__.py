"""Passages: the searchable pieces of memories, and the vectors that they wait for. Derived and rebuildable."""
