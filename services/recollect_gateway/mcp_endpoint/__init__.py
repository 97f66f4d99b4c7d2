"""The MCP endpoint: one catalogue of tools, served over Streamable HTTP by the official SDK."""
