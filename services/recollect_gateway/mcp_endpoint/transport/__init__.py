"""MCP over HTTP: requests and answers as they are sent."""
