"""The authorization server, and the documents by which MCP clients discover it."""
