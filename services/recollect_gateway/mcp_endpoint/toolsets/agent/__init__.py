"""Toolset `agent`: verbs made for models. Small schemas, compact replies.

`memories` keeps and finds, `changes` revises and forgets, `relations` relates and explores; `lines` is what the three
share.
"""
