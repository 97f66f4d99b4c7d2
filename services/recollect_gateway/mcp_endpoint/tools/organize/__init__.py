"""Toolset `organize`: hierarchy, tags, importance and searches, as in the enhanced memory server.

Its entities carry tags (in lower case), importance, times in ISO 8601, and the name of their parent. Lists stand bare
in the text; where one was cut, `nextOffset` and a second text say how to go on.

`shapes` has what its tools share, `searches` what its searches share. A dialect with arguments of its own stands here,
each other beside its tool in `memory`.
"""
