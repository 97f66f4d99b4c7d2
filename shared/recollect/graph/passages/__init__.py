"""Passages: the searchable pieces of memories, and their vectors. They are derived, and can be rebuilt.

`service` indexes memories, and `rows` makes the columns that `store` writes. `labels`, `windows` and `evidence` have
what a passage is found or ranked by in addition to its text. `rebuild_jobs` starts rebuilding; `reembedding` does it
for a change of model, `passage_words` for another analysis of words.
"""
