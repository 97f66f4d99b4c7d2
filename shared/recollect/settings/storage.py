"""Settings of PostgreSQL, Valkey, and the secret under which what is stored is hashed."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings

from recollect.peppers import Pepper

DEVELOPMENT_SECRET = "recollect-development-only"  # noqa: S105 - refused where others reach the gateway

NO_DATABASE_ADDRESS = (
    "It is no address of a PostgreSQL database, such as postgresql://login:password@db.internal:5432/recollect, where "
    "a password has letters, digits and -._~ only, and other signs percent-encoded"
)
"""What is said of one that cannot be read. It does not show the address, since that may hold a password."""


class StorageSettings(BaseSettings):
    """PostgreSQL, Valkey, and the secret under which what is stored is hashed."""

    database_url: str = Field(
        default="postgresql://recollect_app@127.0.0.1:5432/recollect",
        description="PostgreSQL 15 or newer with pgvector 0.8 or newer, pg_trgm and btree_gin. The login must "
        "be `recollect_app` or may become it (SET ROLE).",
    )
    owner_database_url: str | None = Field(
        default=None,
        description="The same database for migrations and operator commands: a login that is "
        "`recollect_owner` or may become it. Default: `RECOLLECT_DATABASE_URL`.",
    )
    maintenance_database_url: str | None = Field(
        default=None,
        description="The same database for the worker's index building: a login that is `recollect_maintenance` or "
        "may become `recollect_owner`. Unset: no vector index is built, and recall in large graphs is slower.",
    )
    replica_database_url: str | None = Field(
        default=None,
        description="A streaming replica of the same database, or an address that leads to one of several, for "
        "gateways, and for exports of workers: what only reads a graph reads it there, where it is as the primary "
        "has it (docs/replicas.md). "
        "The login must be `recollect_app` or may become it. Unset: all is read from the primary.",
    )
    replica_max_lag_seconds: float = Field(
        default=5.0,
        gt=0,
        le=300,
        description="How old what has no revision (vectors, what waits) may be where it is read from a replica. One "
        "that lags more is not read.",
    )
    replica_wait_seconds: float = Field(
        default=0.5, gt=0, description="How long a call waits for a replica to begin before it reads from the primary."
    )
    database_pool_size: int = Field(
        default=10,
        ge=1,
        le=200,
        description="Connections per process, to each cell; 2 or more where there are several.",
    )
    database_pooled: bool = Field(
        default=False,
        description="`RECOLLECT_DATABASE_URL` leads to PgBouncer in transaction mode, or the like: nothing is kept in "
        "sessions, which costs some speed. So may `RECOLLECT_REPLICA_DATABASE_URL`; the other addresses go past it.",
    )
    database_tenant_share: float = Field(
        default=0.5, gt=0, le=1, description="Share of a process's connections that one tenant may hold at a time."
    )
    database_acquire_seconds: float = Field(
        default=5.0, gt=0, description="How long a call waits for a free connection before it is told to try again."
    )
    statement_timeout_seconds: float = Field(
        default=30.0, gt=0, le=86_400, description="Longest run of one SQL statement."
    )
    lock_timeout_seconds: float = Field(
        default=10.0, gt=0, le=86_400, description="How long a write waits for other writers of the same graph."
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
        "and keep them, alike for gateways and workers: changing it makes every key void, and secrets of webhooks "
        "unreadable, unless it is accepted for a while: `RECOLLECT_ACCEPTED_KEY_SECRETS`.",
    )
    accepted_key_secrets: list[SecretStr] = Field(
        default=[],
        max_length=4,
        description="Secrets that are accepted beside `RECOLLECT_KEY_SECRET` while it is replaced, as JSON. What is "
        "found under one of them costs another round trip; API keys are hashed anew when they are used.",
    )

    @property
    def pepper(self) -> Pepper:
        """The secret, with those that are accepted beside it."""
        others = [secret.get_secret_value().encode() for secret in self.accepted_key_secrets]
        return Pepper.of(self.key_secret.get_secret_value().encode(), others)
