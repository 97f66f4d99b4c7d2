"""Toolset `agent`: verbs made for models. Small schemas, compact replies.

`memories` remembers and recalls, `changes` revises and forgets, `relations` relates and explores; `lines` has what the
three share.
"""
