"""Toolset `memory`: drop-in for the official memory server and for the mcp-memory crate.

Names, arguments, results and texts are those of https://github.com/modelcontextprotocol/servers (src/memory) and of
https://crates.io/crates/mcp-memory, which adds tools to it, and filters and pages to `read_graph` and `search_nodes`.
Array replies stand bare in the text; what a bound left out is said in `structuredContent` and in a second text.

`entities`, `observations` and `relations` make, open and delete these, `graph` reads them together, `walks` follows the
relations, `stats` counts; `shapes` is what they share.
"""
