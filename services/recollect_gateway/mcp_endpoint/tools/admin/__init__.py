"""Toolset `admin`: tools by which operators' agents watch over a memory."""
