"""Toolset `admin`: tools for agents that administer a memory. Each tool is in the file of its name."""
