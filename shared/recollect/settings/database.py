"""Settings of PostgreSQL, Valkey, and the secret of stored hashes."""

from urllib.parse import parse_qsl, urlsplit

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings

from recollect.crypto.peppers import Pepper

DEVELOPMENT_SECRET = "recollect-development-only"  # noqa: S105 - refused where others reach the gateway

MIN_SECRET_BYTES = 32
"""Shortest key secret with which a gateway that others reach starts: as long as the hashes that it keys."""

NO_DATABASE_ADDRESS = (
    "It is not the address of a PostgreSQL database, such as postgresql://login:password@db.internal:5432/recollect. "
    "In a password, percent-encode everything except letters, digits and the characters -._~"
)
"""The error message for an address that cannot be read. It does not show the address, which may hold a password."""

POSTGRESQL_PORT = 5432
"""The port of an address that names none."""


def server_of(url: str) -> str:
    """Host and port in an address of PostgreSQL, for operators: never its login, and nothing of its password."""
    try:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query))
    except ValueError:
        return "an address that cannot be read"
    _, at, hosts = parts.netloc.rpartition("@")
    if not at and "@" in url:  # A password with a slash in it: what looks like a host may be a part of it.
        return "an address that cannot be read"
    hosts, port = given.get("host") or hosts, given.get("port") or str(POSTGRESQL_PORT)
    named = [host for host in hosts.split(",") if host] or ["its default host"]
    return ",".join(host if host.startswith("/") or _has_port(host) else f"{host}:{port}" for host in named)


def _has_port(host: str) -> bool:
    return host.rpartition("]")[2].count(":") == 1


class DatabaseSettings(BaseSettings):
    """PostgreSQL, Valkey, and the secret of stored hashes."""

    database_url: str = Field(
        default="postgresql://recollect_app@127.0.0.1:5432/recollect",
        description="Address of the PostgreSQL database: PostgreSQL 15 or newer with pgvector 0.8 or newer, pg_trgm "
        "and btree_gin. The login must be `recollect_app` or be able to become it (SET ROLE).",
    )
    owner_database_url: str | None = Field(
        default=None,
        description="Address of the same database for migrations and operator commands. The login must be "
        "`recollect_owner` or be able to become it. Unset: `RECOLLECT_DATABASE_URL` is used.",
    )
    maintenance_database_url: str | None = Field(
        default=None,
        description="Address of the same database with which workers build vector indexes. The login must be "
        "`recollect_maintenance` or be able to become `recollect_owner`. Unset: no vector index is built, and recall "
        "in large graphs is slower.",
    )
    replica_database_url: str | None = Field(
        default=None,
        description="Address of a streaming replica of the same database, or one behind which there are several "
        "replicas. Gateways, and workers for exports, read a graph from it where they only read and the replica has "
        "the same revision of the graph as the primary (docs/replicas.md). The login must be `recollect_app` or be "
        "able to become it. Unset: everything is read from the primary.",
    )
    replica_max_lag_seconds: float = Field(
        default=5.0,
        gt=0,
        le=300,
        description="Maximum lag of a replica, in seconds. Data that has no revision (vectors, the number of passages "
        "that wait for theirs) may be this old when it is read from a replica. A replica that lags more is not read.",
    )
    replica_wait_seconds: float = Field(
        default=0.5,
        gt=0,
        description="Maximum time, in seconds, for a replica to begin a call's transaction. After that, the call "
        "reads from the primary.",
    )
    database_pool_size: int = Field(
        default=10,
        ge=1,
        le=200,
        description="Maximum number of connections of a process to each cell, in addition to two reserved ones. With "
        "several cells, it must be at least 2. A call that finds all of them in use waits "
        "(`RECOLLECT_DATABASE_ACQUIRE_SECONDS`).",
    )
    database_pooled: bool = Field(
        default=False,
        description="Whether `RECOLLECT_DATABASE_URL` leads to PgBouncer in transaction mode, or to a similar pooler. "
        "If true, nothing is kept in sessions, which costs some speed. `RECOLLECT_REPLICA_DATABASE_URL` may then lead "
        "to such a pooler, too; the other addresses must bypass it.",
    )
    database_tenant_share: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Maximum share of a process's connections that one tenant may hold at a time. Further calls of "
        "the tenant wait.",
    )
    database_acquire_seconds: float = Field(
        default=5.0,
        gt=0,
        description="Maximum time, in seconds, for which a call waits for a free connection. After that, it fails "
        "with `busy` and can be tried again.",
    )
    statement_timeout_seconds: float = Field(
        default=30.0,
        gt=0,
        le=86_400,
        description="Maximum run time of one SQL statement, in seconds. A statement that takes longer is cancelled, "
        "and its call fails with `busy`.",
    )
    lock_timeout_seconds: float = Field(
        default=10.0,
        gt=0,
        le=86_400,
        description="Maximum time, in seconds, for which a write waits for other writers of the same graph. After "
        "that, it fails with `busy`.",
    )
    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0",
        description="Address of Valkey or Redis (redis://, rediss:// or unix://), which makes calls faster and wakes "
        "the worker. It may be unreachable at any time.",
    )
    redis_timeout_seconds: float = Field(
        default=0.5,
        gt=0,
        description="Maximum wait for Redis, in seconds. After that, the process continues without it.",
    )
    key_secret: SecretStr = Field(
        default=SecretStr(DEVELOPMENT_SECRET),
        description="Secret key of the hashes under which API keys are stored. In production, set it to 32 random "
        "bytes or more (`openssl rand -hex 32`), the same for gateways and workers, and keep it; a gateway or operator "
        "API that other machines can reach refuses a shorter one. Changing it makes every API key void and the "
        "secrets of webhooks unreadable, unless `RECOLLECT_ACCEPTED_KEY_SECRETS` still lists the old value.",
    )
    accepted_key_secrets: list[SecretStr] = Field(
        default=[],
        max_length=4,
        description="Secrets that are accepted in addition to `RECOLLECT_KEY_SECRET` while it is replaced, as a JSON "
        "list. Finding a credential under one of them costs another round trip. API keys are hashed anew when they "
        "are used.",
    )

    @property
    def pepper(self) -> Pepper:
        """The secret, with the secrets that are accepted in addition to it."""
        accepted = [secret.get_secret_value().encode() for secret in self.accepted_key_secrets]
        return Pepper.of(self.key_secret.get_secret_value().encode(), accepted)
