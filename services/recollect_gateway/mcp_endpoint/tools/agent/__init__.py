"""Toolset `agent`: verbs made for models. Small schemas, compact replies."""
