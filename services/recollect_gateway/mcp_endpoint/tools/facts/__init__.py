"""Toolset `facts`: the graph-memory contract.

`shapes` has what its tools share, `node_arguments` what those share that write nodes, `errors` the contract's error
envelope.
"""
