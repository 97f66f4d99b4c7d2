"""Creates the embedder that the settings name: a packaged model, or any behind OpenAI's API."""

from recollect.embedding.measured import MeasuredEmbedder
from recollect.embedding.models.minilm import MiniLMEmbedder
from recollect.embedding.models.multilingual import MultilingualEmbedder
from recollect.embedding.models.openai import OpenAIEmbedder
from recollect.embedding.models.wordllama import WordLlamaEmbedder
from recollect.errors import InvalidInput
from recollect.settings import Settings


def create_previous_embedder(settings: Settings) -> MeasuredEmbedder | None:
    """The embedder that `RECOLLECT_PREVIOUS_EMBEDDER` names, loaded, if any. Raises as `create_embedder` does."""
    if settings.previous_embedder is None:
        return None
    previous_settings = {
        "embedder": settings.previous_embedder,
        "embedding_model": settings.previous_embedding_model or settings.embedding_model,
        "embedding_dimensions": settings.previous_embedding_dimensions or settings.embedding_dimensions,
    }
    return create_embedder(settings.model_copy(update=previous_settings))


def create_embedder(settings: Settings) -> MeasuredEmbedder:
    """The embedder that `RECOLLECT_EMBEDDER` names, loaded.

    Raises InvalidInput for another name and for `wordllama` where that is not installed, and Unavailable
    (embedder_unavailable) where its weights are not those expected.
    """
    match settings.embedder:
        case "wordllama":
            return MeasuredEmbedder(WordLlamaEmbedder(), settings.embedder)
        case "minilm":
            return MeasuredEmbedder(MiniLMEmbedder(threads=settings.embedding_threads), settings.embedder)
        case "multilingual":
            return MeasuredEmbedder(MultilingualEmbedder(threads=settings.embedding_threads), settings.embedder)
        case "openai":
            return MeasuredEmbedder(OpenAIEmbedder(settings), settings.embedder)
    raise InvalidInput(
        f"There is no embedder {settings.embedder!r}: set RECOLLECT_EMBEDDER to minilm, multilingual, wordllama or "
        "openai.",
        path="RECOLLECT_EMBEDDER",
    )
