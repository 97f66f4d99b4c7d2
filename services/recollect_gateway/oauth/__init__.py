"""The authorization server, and what MCP clients are told of it."""
