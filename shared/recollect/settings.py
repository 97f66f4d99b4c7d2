"""Every setting, read from the environment: one class, one prefix (`RECOLLECT_`), one description each."""

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from recollect.errors import InvalidInput

DEVELOPMENT_SECRET = "recollect-development-only"  # noqa: S105 - refused by the gateway beyond loopback
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Settings(BaseSettings):
    """Settings of gateway, worker and command line. `docs/settings.md` is generated from the descriptions."""

    model_config = SettingsConfigDict(env_prefix="RECOLLECT_", env_ignore_empty=True, extra="ignore", frozen=True)

    database_url: str = Field(
        default="postgresql://recollect_app@127.0.0.1:5432/recollect",
        description="PostgreSQL 15 or newer with pgvector, pg_trgm and btree_gin. The login must be "
        "`recollect_app` or may become it (SET ROLE).",
    )
    owner_database_url: str | None = Field(
        default=None,
        description="The same database for migrations and operator commands: a login that is "
        "`recollect_owner` or may become it. Default: `RECOLLECT_DATABASE_URL`.",
    )
    database_pool_size: int = Field(default=10, ge=1, le=200, description="Connections per process.")
    database_acquire_seconds: float = Field(
        default=5.0, gt=0, description="How long a call waits for a free connection before it is told to try again."
    )
    statement_timeout_seconds: float = Field(default=30.0, gt=0, description="Longest run of one SQL statement.")
    lock_timeout_seconds: float = Field(
        default=10.0, gt=0, description="How long a write waits for other writers of the same graph."
    )
    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0",
        description="Valkey or Redis (redis://, rediss:// or unix://). Speeds things up and wakes the worker; "
        "may be away at any time.",
    )
    redis_timeout_seconds: float = Field(
        default=0.5, gt=0, description="Longest wait for Redis before going on without it."
    )
    key_secret: SecretStr = Field(
        default=SecretStr(DEVELOPMENT_SECRET),
        description="Keys the hashes under which API keys are stored. Set 32 random bytes or more in production "
        "and keep them: changing it makes every key void.",
    )
    host: str = Field(default="127.0.0.1", description="Address that the gateway listens on.")
    port: int = Field(default=8787, ge=0, le=65535, description="Port that the gateway listens on.")
    allowed_hosts: list[str] = Field(
        default=["127.0.0.1:*", "localhost:*", "[::1]:*"],
        description='Host headers that are served, as JSON (`["memory.example.com"]`); `["*"]` serves all. '
        "Guards local servers against DNS rebinding.",
    )
    max_request_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, description="Largest request body, in bytes.")
    max_reply_items: int = Field(
        default=10_000,
        ge=1,
        description="Most entities, observations and relations in one reply before paging is asked for.",
    )
    max_reply_bytes: int = Field(
        default=2_000_000, ge=1024, description="Longest text of one reply of a reading tool, in bytes of JSON."
    )
    max_metadata_size: int = Field(default=100_000, ge=2, description="Largest metadata of one item, in bytes of JSON.")
    max_text_length: int = Field(
        default=10_000, ge=1, le=100_000, description="Longest text of a node in toolset `facts`, in characters."
    )
    min_ttl_days: float = Field(
        default=0.0, ge=0, description="In toolset `facts`, `ttl_days` must be more than this, in days."
    )
    max_ttl_days: float = Field(
        default=3650.0, gt=0, le=36_500, description="In toolset `facts`, `ttl_days` is this at most, in days."
    )
    embedder: str = Field(
        default="wordllama",
        description="`wordllama` (in process, no download) or `openai` (any OpenAI-compatible /v1/embeddings).",
    )
    embedding_url: str = Field(
        default="http://127.0.0.1:8080/v1", description="Base address of the OpenAI-compatible embedder."
    )
    embedding_api_key: SecretStr | None = Field(default=None, description="Bearer token of that embedder.")
    embedding_model: str = Field(default="text-embedding-3-small", description="Model name sent to that embedder.")
    embedding_dimensions: int = Field(default=1536, ge=1, le=4000, description="Vector length of that model.")
    embedding_timeout_seconds: float = Field(default=10.0, gt=0, description="Longest wait for that embedder.")
    embedding_batch: int = Field(default=256, ge=1, le=2048, description="Passages embedded per batch.")
    embedding_lease_seconds: float = Field(
        default=60.0, gt=0, description="How long a worker holds passages that it is embedding before others may."
    )
    sweep_seconds: int = Field(
        default=10, ge=1, le=60, description="How often the worker looks for pending work that no wake-up announced."
    )
    otlp_endpoint: str | None = Field(
        default=None, description="OTLP/HTTP collector, such as http://127.0.0.1:4318. Unset: no telemetry is made."
    )
    log_format: str = Field(default="console", pattern="^(console|json)$", description="`console` or `json`.")
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="Least level logged.")
    data_dir: Path | None = Field(
        default=None, description="Where `recollect local` keeps its data. Default: the user's data folder."
    )

    def require_own_secret(self) -> None:
        """Raise InvalidInput where the world could reach keys that are hashed with the secret in this file."""
        if self.key_secret.get_secret_value() == DEVELOPMENT_SECRET and self.host not in LOOPBACK:
            raise InvalidInput(
                "Set it to 32 random bytes or more before listening beyond this machine", path="RECOLLECT_KEY_SECRET"
            )

    @property
    def migration_url(self) -> str:
        """The address that migrations and operator commands use."""
        return self.owner_database_url or self.database_url
