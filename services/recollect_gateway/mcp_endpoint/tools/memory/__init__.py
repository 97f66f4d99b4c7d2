"""Toolset `memory`: drop-in for the official memory server and for the mcp-memory crate.

Names, arguments, results and texts are those of https://github.com/modelcontextprotocol/servers (src/memory) and of
https://crates.io/crates/mcp-memory, which adds tools to it, and filters and pages to `read_graph` and `search_nodes`.
The text of an array reply is the bare array; `structuredContent` and a second text say what a bound left out.

Where toolset `organize` has a dialect of a tool with the same arguments, it stands beside the tool. `shapes` has what
the tools share.
"""
