"""The words of English and the weights of the embedder of tests, loaded on import: what is forked then has them."""

import pytest

from recollect.embedding import WordLlamaEmbedder
from recollect.retrieval.recall.english_words import english
from tests.support.quick_embedder import QUICK_EMBEDDER
from tests.support.weights import load_weights_once

english()
if QUICK_EMBEDDER == "wordllama":
    load_weights_once(pytest.MonkeyPatch())
    WordLlamaEmbedder()
