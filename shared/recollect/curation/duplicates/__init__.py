"""Entities that are alike: found, and proposed to be merged.

`service` finds them when asked, `deduplication` by a pass over the graph in a job; `similarity` says how alike two
entities are. `proposals` are pairs for people to decide. `recollect.curation.merging` merges.
"""
