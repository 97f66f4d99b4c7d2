"""The embedder that most tests use."""

from importlib.util import find_spec

import pytest

QUICK_EMBEDDER = "wordllama" if find_spec("wordllama") else "minilm"
"""The one that costs tests the least, of those that have wheels for this Python and this machine."""

OF_WORDLLAMA = pytest.mark.skipif(
    QUICK_EMBEDDER != "wordllama", reason="what it expects is what wordllama gives, which has no wheel here"
)
"""Marks tests whose numbers are those of that embedder: its cosines, and that it gives no tokens."""
