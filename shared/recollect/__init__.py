"""Recollect's core: graphs, recall and tenancy, free of any transport.

Import order, enforced by import-linter, from the outermost capability inwards:
transfer → curation → memory → search → traversal → hierarchy → relations → nodes → passages → graphs
→ jobs → identity → tenants → platform → settings, caller, errors.
"""

__version__ = "0.1.0"
