"""Programs that connect real MCP clients to a gateway; each needs the packages of one client only."""
