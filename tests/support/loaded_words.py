"""The words of English and the weights of the embedder of tests, loaded on import: what is forked then has them."""

import logging

import pytest

from recollect.embedding import WordLlamaEmbedder
from recollect.retrieval.recall.english_words import english
from tests.support.quick_embedder import QUICK_EMBEDDER
from tests.support.weights import load_weights_once

english()
if QUICK_EMBEDDER == "wordllama":
    load_weights_once(pytest.MonkeyPatch())
    WordLlamaEmbedder()
    # The library writes what all others log to stderr. Commands that are forked from here must not.
    logging.basicConfig(force=True, handlers=[], level=logging.WARNING)
