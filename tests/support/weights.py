"""The weights of the embedder that most tests use, loaded once by each process."""

from collections.abc import Iterator
from typing import Any

import pytest

from recollect.embedding import WordLlamaEmbedder


@pytest.fixture(scope="session", autouse=True)
def weights_loaded_once() -> Iterator[None]:
    """All gateways and workers that tests run in this process share the weights, which nothing changes.

    To load them is a third of what it takes to start a gateway, and tests start more than a hundred.
    """
    with pytest.MonkeyPatch.context() as patch:
        load_weights_once(patch)
        yield


def load_weights_once(patch: pytest.MonkeyPatch) -> None:
    """Let all embedders of this process, and of those that are forked from it, share the weights of the first."""
    load, loaded = WordLlamaEmbedder.__init__, list[Any]()

    def load_once(embedder: WordLlamaEmbedder) -> None:
        if not loaded:
            load(embedder)
            loaded.append(embedder._model)
        embedder._model = loaded[0]

    patch.setattr(WordLlamaEmbedder, "__init__", load_once)
