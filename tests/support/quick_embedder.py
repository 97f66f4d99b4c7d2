"""The embedder that most tests use."""

from importlib.util import find_spec

QUICK_EMBEDDER = "wordllama" if find_spec("wordllama") else "minilm"
"""The one that costs tests the least, of those that have wheels for this Python and this machine."""
