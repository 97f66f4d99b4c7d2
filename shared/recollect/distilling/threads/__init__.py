"""Threads: conversations that are distilled, page by page."""
