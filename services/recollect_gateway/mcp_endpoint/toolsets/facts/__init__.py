"""Toolset `facts`: the graph-memory contract.

`nodes` makes and changes facts and entities by id, `history` tells their versions, `search` finds them; `relations`
relates them, `walks` follows the relations; `stats` counts, `health` says how the service is. `shapes` is what they
share, `errors` the contract's error envelope.
"""
