"""Recollect's core: graphs, recall and tenancy, free of any transport.

Groups, from the outermost inwards, as import-linter enforces: transfer → retention → memory → curation → retrieval
→ graph → accounts → jobs → platform → settings, caller → errors, ids, times.
"""

__version__ = "0.2.0"
