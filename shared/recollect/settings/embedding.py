"""Settings of the model that gives memories their vectors, and what is cached."""

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings

from recollect.web_url import read_web_url


class EmbeddingSettings(BaseSettings):
    """The model that gives memories their vectors, and what is cached."""

    embedder: str = Field(
        default="minilm",
        description="`minilm` (in process, finds more), `wordllama` (in process, quickest) or `openai` (any "
        "OpenAI-compatible /v1/embeddings). Before changing it, see docs/embedding.md.",
    )
    embedding_threads: int = Field(
        default=1, ge=1, le=64, description="Texts that `minilm` embeds at the same time, each on a core, per process."
    )
    embedding_url: str = Field(
        default="http://127.0.0.1:8080/v1", description="Base address of the OpenAI-compatible embedder."
    )
    embedding_api_key: SecretStr | None = Field(default=None, description="Bearer token of that embedder.")
    embedding_model: str = Field(default="text-embedding-3-small", description="Model name sent to that embedder.")
    embedding_dimensions: int = Field(default=1536, ge=1, le=4000, description="Vector length of that model.")
    embedding_timeout_seconds: float = Field(default=10.0, gt=0, description="Longest wait for that embedder.")
    previous_embedder: str | None = Field(
        default=None,
        description="The embedder that was configured before, for graphs that its vectors still serve: `minilm`, "
        "`wordllama` or `openai`. Set it on gateways and workers until `reembed` is done for every graph.",
    )
    previous_embedding_model: str | None = Field(
        default=None, description="Its model name, where it is `openai`. Default: `RECOLLECT_EMBEDDING_MODEL`."
    )
    previous_embedding_dimensions: int | None = Field(
        default=None, ge=1, le=4000, description="Its vector length. Default: `RECOLLECT_EMBEDDING_DIMENSIONS`."
    )
    cache_embeddings_enabled: bool = Field(default=True, description="Keep the vectors of recent questions in memory.")
    cache_embeddings_maxsize: int = Field(
        default=1000, ge=1, le=1_000_000, description="Questions of one tenant whose vectors a gateway keeps, at most."
    )
    cache_embeddings_max_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=0,
        description="Bytes that those vectors and questions of all tenants take, at most.",
    )
    cache_search_enabled: bool = Field(
        default=True, description="Keep what recalls found, as ids and scores, in Redis. Gateways share it."
    )
    cache_search_maxsize: int = Field(
        default=100, ge=1, le=100_000, description="Recalls that are kept for one tenant, at most; up to 64 kB each."
    )
    cache_search_ttl: int = Field(default=60, ge=1, le=86_400, description="How long a recall is kept, in seconds.")
    cache_search_wait_seconds: float = Field(
        default=0.05, gt=0, description="How long a recall waits for Redis before it searches without the cache."
    )

    @field_validator("embedding_url")
    @classmethod
    def _embedding_service(cls, url: str) -> str:
        return read_web_url(url)
