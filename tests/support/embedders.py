"""The embedders of the service, each loaded once in a process: to load one takes up to two seconds."""

from functools import cache

from recollect.embedding import Embedder, create_embedder
from recollect.embedding.models.minilm import MiniLMEmbedder
from recollect.embedding.models.multilingual import MultilingualEmbedder
from recollect.settings import Settings


@cache
def loaded_embedder(name: str) -> Embedder:
    """The embedder of that name, as a gateway makes it."""
    return create_embedder(Settings(embedder=name))


@cache
def loaded_minilm() -> MiniLMEmbedder:
    """That model without what counts its use."""
    return MiniLMEmbedder()


@cache
def loaded_multilingual() -> MultilingualEmbedder:
    """That model without what counts its use."""
    return MultilingualEmbedder()
