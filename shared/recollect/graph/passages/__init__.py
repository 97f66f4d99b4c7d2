"""Passages: the searchable pieces of memories, and the vectors that they wait for. Derived and rebuildable.

`service` indexes memories, and `rows` makes the columns that `store` writes. `labels`, `windows` and `evidence` are
what a passage is found or ranked by beside its text. `rebuild_jobs` starts rebuilding; `reembedding` does it for a
change of model, `passage_words` for another analysis of words.
"""
