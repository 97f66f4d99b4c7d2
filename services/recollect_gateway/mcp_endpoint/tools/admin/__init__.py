"""Toolset `admin`: tools by which operators' agents watch over a memory. A tool stands in the file of its name."""
