"""Toolset `facts`: the graph-memory contract.

`arguments` and `results` are its shapes, `errors` its error envelope; the handlers are in `nodes` (facts and entities
by id), `relations` (relations, triplets, what lies around) and `health`.
"""
