"""Settings of the embedding model and of the caches."""

from pydantic import Field, SecretStr, ValidationInfo, field_validator
from pydantic_settings import BaseSettings

from recollect.errors import InvalidInput
from recollect.settings.addresses.web_url import read_web_url

EMBEDDERS = ("minilm", "multilingual", "wordllama", "openai")
"""The embedders that there are, by their names in settings."""


class EmbeddingSettings(BaseSettings):
    """The embedding model, and the caches."""

    embedder: str = Field(
        default="multilingual",
        description="Embedding model: `multilingual` (in process, for every language), `minilm` (in process, for "
        "English alone, at two thirds of the processor time), `wordllama` (in process, fastest; needs the extra "
        "`wordllama`, docs/install.md) or `openai` (any OpenAI-compatible /v1/embeddings). Before you change it, see "
        "docs/embedding.md.",
    )
    embedding_threads: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Number of texts that `minilm` or `multilingual` embeds at the same time in each process. Each "
        "takes a core.",
    )
    embedding_url: str = Field(
        default="http://127.0.0.1:8080/v1",
        description="Base address of the OpenAI-compatible embedder. It is used if `RECOLLECT_EMBEDDER` or "
        "`RECOLLECT_PREVIOUS_EMBEDDER` is `openai`.",
    )
    embedding_api_key: SecretStr | None = Field(
        default=None, description="Bearer token for the OpenAI-compatible embedder. Unset: none is sent."
    )
    embedding_model: str = Field(
        default="text-embedding-3-small", description="Model name that is sent to the OpenAI-compatible embedder."
    )
    embedding_dimensions: int = Field(
        default=1536,
        ge=1,
        le=4000,
        description="Length of the vectors of the OpenAI-compatible embedder's model, at most 4,000.",
    )
    embedding_timeout_seconds: float = Field(
        default=10.0,
        gt=0,
        description="Maximum time for a call of the OpenAI-compatible embedder, in seconds, retries included.",
    )
    previous_embedder: str | None = Field(
        default=None,
        description="The embedder that was configured before, for graphs that still use its vectors: `minilm`, "
        "`multilingual`, `wordllama` or `openai`. Set it on gateways and workers until `reembed` is done for every "
        "graph.",
    )
    previous_embedding_model: str | None = Field(
        default=None,
        description="Model name of the previous embedder, if that is `openai`. Unset: `RECOLLECT_EMBEDDING_MODEL`.",
    )
    previous_embedding_dimensions: int | None = Field(
        default=None,
        ge=1,
        le=4000,
        description="Length of the previous embedder's vectors. Unset: `RECOLLECT_EMBEDDING_DIMENSIONS`.",
    )
    cache_embeddings_enabled: bool = Field(
        default=True, description="Whether a gateway keeps the vectors of recent questions in memory."
    )
    cache_embeddings_maxsize: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="Maximum number of questions of one tenant whose vectors a gateway keeps.",
    )
    cache_embeddings_max_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=0,
        description="Maximum size of the questions and vectors that a gateway keeps for all tenants together, in "
        "bytes.",
    )
    cache_search_enabled: bool = Field(
        default=True,
        description="Whether the results of recalls are kept in Redis, as ids and scores. Gateways share them.",
    )
    cache_search_maxsize: int = Field(
        default=100,
        ge=1,
        le=100_000,
        description="Maximum number of recalls that are kept for one tenant. Each takes up to 64 kB.",
    )
    cache_search_ttl: int = Field(
        default=60, ge=1, le=86_400, description="Time for which a recall is kept, in seconds."
    )
    cache_search_wait_seconds: float = Field(
        default=0.05,
        gt=0,
        description="Maximum time, in seconds, for which a recall waits for Redis. After that, it searches without "
        "the cache.",
    )

    @field_validator("embedder", "previous_embedder")
    @classmethod
    def _known_embedder(cls, name: str | None, field: ValidationInfo) -> str | None:
        if name is not None and name not in EMBEDDERS:
            variable = f"RECOLLECT_{field.field_name}".upper()
            raise InvalidInput(
                f"There is no embedder {name!r}: set {variable} to {', '.join(EMBEDDERS[:-1])} or {EMBEDDERS[-1]}.",
                path=variable,
            )
        return name

    @field_validator("embedding_url")
    @classmethod
    def _embedding_service(cls, url: str) -> str:
        return read_web_url(url)
