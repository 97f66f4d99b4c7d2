"""Toolset `facts`: the graph-memory contract.

`nodes` creates and changes facts and entities by id, `history` lists their versions, `search` finds them; `relations`
relates them, `walks` follows relations; `stats` counts, `health` checks the service. `shapes` has what they share,
`errors` the contract's error envelope.
"""
