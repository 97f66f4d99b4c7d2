"""Logs, traces and metrics, and how they are exported."""
