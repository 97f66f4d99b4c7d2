"""The gateway: MCP for agents, a management API for admins. It keeps no state of its own."""
