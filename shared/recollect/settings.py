"""Every setting, read from the environment: one class, one prefix (`RECOLLECT_`), one description each."""

import re
from email.utils import parseaddr
from ipaddress import ip_network
from pathlib import Path

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from recollect.errors import InvalidInput
from recollect.mail_url import read_mail_url
from recollect.printable import controls
from recollect.public_url import local_url, read_public_url

DEVELOPMENT_SECRET = "recollect-development-only"  # noqa: S105 - refused by the gateway beyond loopback
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9.:\[\]_-]+")
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Settings(BaseSettings):
    """Settings of gateway, worker and command line. `docs/settings.md` is generated from the descriptions."""

    model_config = SettingsConfigDict(
        env_prefix="RECOLLECT_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,  # Addresses hold passwords.
    )

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
    database_pool_size: int = Field(default=10, ge=1, le=200, description="Connections per process.")
    database_tenant_share: float = Field(
        default=0.5, gt=0, le=1, description="Share of a process's connections that one tenant may hold at a time."
    )
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
        "and keep them, alike for gateways and workers: changing it makes every key void, and secrets of webhooks "
        "unreadable.",
    )
    host: str = Field(default="127.0.0.1", description="Address that the gateway listens on.")
    port: int = Field(default=8787, ge=0, le=65535, description="Port that the gateway listens on.")
    public_url: str | None = Field(
        default=None,
        description="The address by which clients reach the gateway, such as `https://memory.example.com`: scheme, "
        "host and port, no path, since it needs a host of its own. Default: `http://`, `RECOLLECT_HOST` and "
        "`RECOLLECT_PORT`.",
    )
    allowed_hosts: list[str] = Field(
        default=["127.0.0.1:*", "localhost:*", "[::1]:*"],
        description='Host headers that are served beside that of the public address, as JSON (`["memory.internal"]`, '
        '`["localhost:*"]` with any port); `["*"]` serves all. Guards local servers against DNS rebinding.',
    )
    allowed_origins: list[str] = Field(
        default=[],
        description="Origins of web pages elsewhere that may ask from a browser, as JSON "
        '(`["https://app.example.com"]`); `["*"]` lets every page. They send keys and tokens on purpose: cookies are '
        "taken from our own pages alone.",
    )
    trusted_proxies: list[str] = Field(
        default=[],
        description="Proxies in front whose `X-Forwarded-For` tells who the client is, as JSON: addresses and networks "
        '(`["10.0.0.0/8"]`). Nobody else is believed.',
    )
    outbound_networks: list[str] = Field(
        default=[],
        description="Networks of your own that addresses which clients name may lead to nonetheless, as JSON "
        '(`["10.1.2.0/24"]`): where an identity provider stands, say. Loopback (`["127.0.0.0/8"]`) may then be reached '
        "on any port and without TLS, for tests and for one machine.",
    )
    outbound_refused_networks: list[str] = Field(
        default=[],
        description="Public addresses and networks that are yours and must not be reached so, as JSON. They go before "
        "`RECOLLECT_OUTBOUND_NETWORKS`. What is not of the public internet is refused without.",
    )
    outbound_ports: list[int] = Field(default=[443], description="Ports that such addresses may name, as JSON.")
    dns_servers: list[str] = Field(
        default=[],
        description='Name servers that are asked for the records of e-mail domains, as JSON (`["10.0.0.2:53"]`). '
        "Empty: those of the machine.",
    )
    outbound_seconds: float = Field(
        default=10.0, gt=0, le=60, description="How long an answer from such an address may take, all in all."
    )
    max_connections: int = Field(
        default=1000, ge=1, le=1_000_000, description="Connections that a gateway has at once, at most."
    )
    max_connections_per_address: int = Field(
        default=200,
        ge=1,
        le=1_000_000,
        description="Those of one client address (IPv6: of one /64), at most. Trusted proxies have no such bound.",
    )
    max_headers: int = Field(default=100, ge=10, le=10_000, description="Headers of one request, at most.")
    max_header_bytes: int = Field(
        default=32 * 1024, ge=1024, le=1024 * 1024, description="Bytes of them together with the address, at most."
    )
    header_seconds: float = Field(
        default=10.0, gt=0, le=3600, description="How long a client may take to send the headers of a request."
    )
    body_seconds: float = Field(
        default=20.0, gt=0, le=3600, description="How long a client may take for each 64 kB of a body, or its end."
    )
    answer_seconds: float = Field(
        default=60.0, gt=0, le=3600, description="How long a client may take nothing of an answer that is being sent."
    )
    keep_alive_seconds: int = Field(
        default=75,
        ge=1,
        le=3600,
        description="How long a connection is kept that asks nothing. Longer than the proxy in front keeps it: else a "
        "request may meet a connection that is being closed.",
    )
    failed_keys_per_minute: int = Field(
        default=60,
        ge=1,
        le=1_000_000,
        description="API keys of one client address that may fail in a minute. Beyond, only keys that held lately are "
        "looked up.",
    )
    oauth_access_seconds: int = Field(
        default=900, ge=60, le=86_400, description="How long an OAuth access token holds, in seconds."
    )
    oauth_refresh_days: float = Field(
        default=30.0, gt=0, le=365, description="How long an OAuth client may stay away before it has to ask again."
    )
    oauth_refresh_grace_seconds: float = Field(
        default=30.0,
        ge=0,
        le=600,
        description="How long a refresh token that was used may be used again, by parallel sessions of its client. "
        "Later it counts as stolen, and its grant ends.",
    )
    oauth_requests_per_minute: int = Field(
        default=600,
        ge=1,
        le=1_000_000,
        description="Requests of one client address in a minute to `/oauth/…` and the well-known addresses.",
    )
    oauth_registrations_per_minute: int = Field(
        default=30, ge=1, le=1_000_000, description="Clients that one address registers in a minute, at most."
    )
    oauth_issuer_parameter: bool = Field(
        default=True,
        description="Name the issuer in authorization responses (`iss`, RFC 9207). False for clients that fail on it.",
    )
    public_requests_per_minute: int = Field(
        default=600,
        ge=1,
        le=1_000_000,
        description="Requests of one client address in a minute to `/health/ready`, which asks the database, and as "
        "many to `/v1/openapi.json`. Neither needs a key.",
    )
    sign_ins_per_minute: int = Field(
        default=30,
        ge=1,
        le=1_000_000,
        description="Sign-ins that are tried from one client address in a minute, and for one account; as many "
        "openings of invitations, and as many reports of keys.",
    )
    mail_url: SecretStr | None = Field(
        default=None,
        description="The server by which mail is sent: `smtps://user:password@mail.example.com` (TLS), "
        "`smtp+starttls://…` (STARTTLS, never without), or `smtp://127.0.0.1` (no TLS and no password). Unset: no mail "
        "is sent, and links are shown to who asks for them.",
    )
    mail_from: str | None = Field(
        default=None, description="Whom that mail is from: `Recollect <memory@example.com>`. Set with the server."
    )
    mail_seconds: float = Field(
        default=10.0, gt=0, le=60, description="How long it may take to hand a message to that server, all in all."
    )
    invitation_mails_per_day: int = Field(
        default=100,
        ge=0,
        le=1_000_000,
        description="Invitations of one tenant that are sent by mail in 24 hours. Beyond, their links are shown.",
    )
    breached_passwords_url: str | None = Field(
        default=None,
        description="A range service of Pwned Passwords' kind, such as `https://api.pwnedpasswords.com/range`: "
        "passwords that it knows are refused. It is told five hex digits of a SHA-1. Unset: none is looked up.",
    )
    breached_passwords_seconds: float = Field(
        default=3.0, gt=0, le=60, description="How long it may take to answer. Beyond, the password is not looked up."
    )
    concurrent_calls_per_tenant: int = Field(
        default=100,
        ge=1,
        le=100_000,
        description="Calls of one tenant that a gateway serves at once, where the tenant's plan does not say how many.",
    )
    calls_at_work: int = Field(
        default=8,
        ge=1,
        le=1000,
        description="Calls that a gateway works on at once, of all tenants. The others wait for their turn, which goes "
        "to the tenant that was served least.",
    )
    calls_at_work_beside_others: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Those of one tenant while others have asked in the last five seconds. A tenant alone has all.",
    )
    call_wait_seconds: float = Field(
        default=30.0, gt=0, description="How long a call waits for its turn before it is told to try again."
    )
    rate_limit_wait_seconds: float = Field(
        default=0.2,
        gt=0,
        description="How long a request waits for Redis to count it. Then the gateway goes on counting by itself, "
        "until Redis answers again.",
    )
    rate_limit_local_share: float = Field(
        default=0.25,
        gt=0,
        le=1,
        description="Share of each rate limit that a gateway grants by itself while Redis is away.",
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
    compute_seconds: float = Field(
        default=10.0,
        gt=0,
        description="Processor time of one call's computing (comparing entities, enumerating paths), at most, in "
        "seconds. Two computations of a process run at once, one of each tenant; the others take turns.",
    )
    max_metadata_size: int = Field(default=100_000, ge=2, description="Largest metadata of one item, in bytes of JSON.")
    max_text_length: int = Field(
        default=10_000, ge=1, le=100_000, description="Longest text of a node in toolset `facts`, in characters."
    )
    search_default_limit: int = Field(
        default=10,
        ge=1,
        le=100,
        description="In toolset `facts`, the `limit` of `search` where none is given.",
    )
    similarity_threshold: float = Field(
        default=0.75,
        ge=0,
        le=1,
        description="In toolset `facts`, the `threshold` of `find_similar`, a cosine, where none is given.",
    )
    subgraph_default_max_nodes: int = Field(
        default=20,
        ge=1,
        le=200,
        description="In toolset `facts`, the `max_nodes` of `get_context` where none is given.",
    )
    min_ttl_days: float = Field(
        default=0.0, ge=0, description="In toolset `facts`, `ttl_days` must be more than this, in days."
    )
    max_ttl_days: float = Field(
        default=3650.0, gt=0, le=36_500, description="In toolset `facts`, `ttl_days` is this at most, in days."
    )
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
    embedding_batch: int = Field(default=256, ge=1, le=2048, description="Passages embedded per batch.")
    embedding_lease_seconds: float = Field(
        default=60.0, gt=0, description="How long a worker holds passages that it is embedding before others may."
    )
    vector_index_memories: int = Field(
        default=10_000,
        ge=100,
        description="From how many memories on a graph gets a vector index. Smaller ones are compared exactly.",
    )
    vector_index_memory_mb: int = Field(
        default=512,
        ge=1,
        le=2_000_000,
        description="Memory in which PostgreSQL may build a vector index, in MB. What does not fit is built several "
        "times as slowly: a million memories take 1,300 with wordllama, 1,500 with minilm.",
    )
    recall_audit_share: float = Field(
        default=0.005,
        ge=0,
        le=1,
        description="Share of the recalls served by a vector index that are answered exactly as well, to measure the "
        "index by (metric `recollect.recall.audit`).",
    )
    index_care_seconds: int = Field(
        default=60,
        ge=1,
        le=86_400,
        description="How often the worker looks for graphs that outgrew that, or shrank.",
    )
    sweep_seconds: int = Field(
        default=10, ge=1, le=60, description="How often the worker looks for pending work that no wake-up announced."
    )
    max_jobs: int = Field(default=4, ge=1, le=100, description="Jobs that one worker runs at once.")
    jobs_per_tenant: int = Field(
        default=2, ge=1, le=100, description="Jobs of one tenant that run at once, on all workers together."
    )
    job_lease_seconds: float = Field(
        default=60.0,
        gt=0,
        description="Longest run of one step of a job, and how long a job waits whose worker was killed.",
    )
    job_retention_days: float = Field(
        default=7.0, gt=0, le=3650, description="How long a finished job is kept, with what it left to be fetched."
    )
    retention_days: float = Field(
        default=30.0,
        ge=0,
        le=36_500,
        description="How far back the past can be read, at least: compaction removes what was gone before. As long, "
        "what has expired stays archived before the worker deletes it.",
    )
    usage_flush_seconds: float = Field(
        default=5.0,
        gt=0,
        le=3600,
        description="How often a gateway writes down what it counted of calls and of the use of keys. A gateway that "
        "is killed loses what it counted since.",
    )
    usage_retention_days: float = Field(
        default=400.0, ge=1, le=36_500, description="How long the usage of tenants is kept, hour by hour."
    )
    webhook_retention_days: float = Field(
        default=14.0,
        ge=5,
        le=365,
        description="How long deliveries of webhooks are kept, sent or not: listed, and to be replayed.",
    )
    webhook_tenants_at_once: int = Field(
        default=16,
        ge=1,
        le=100,
        description="Tenants whose webhooks one worker sends at once, up to four requests of each.",
    )
    audit_retention_days: float = Field(
        default=365.0,
        ge=30,
        le=36_500,
        description="How long the audit log of tenants is kept. The database keeps 30 days of it whatever is set.",
    )
    compaction_enabled: bool = Field(
        default=True,
        description="Remove by itself what is beyond the retention: the worker looks at every graph once a day. False: "
        "only `compact` does.",
    )
    job_storage_bytes: int = Field(
        default=1_000_000_000,
        ge=1_048_576,
        description="Most bytes that the jobs of one tenant keep as input and output.",
    )
    otlp_endpoint: str | None = Field(
        default=None, description="OTLP/HTTP collector, such as http://127.0.0.1:4318. Unset: no telemetry is made."
    )
    trace_ratio: float = Field(
        default=1.0,
        ge=0,
        le=1,
        description="Share of traces that are sent whatever became of them, alike in all processes. What failed or "
        "was slow is sent in any case.",
    )
    trace_slow_seconds: float = Field(
        default=1.0, gt=0, description="How long a span takes that has its trace sent for being slow."
    )
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port of its own at which a gateway or worker tells Prometheus its metrics, at `/metrics`: on one "
        "machine, another for each process. Unset: none.",
    )
    metrics_host: str = Field(
        default="127.0.0.1",
        description="Address of that port. It asks for no credential: keep it to networks of your own.",
    )
    access_log: bool = Field(
        default=True, description="Whether the gateway logs a line for each request, at the level INFO."
    )
    log_format: str = Field(default="console", pattern="^(console|json)$", description="`console` or `json`.")
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$", description="Least level logged.")
    data_dir: Path | None = Field(
        default=None, description="Where `recollect local` keeps its data. Default: the user's data folder."
    )

    @field_validator("trusted_proxies", "outbound_networks", "outbound_refused_networks")
    @classmethod
    def _networks(cls, networks: list[str]) -> list[str]:
        return [str(ip_network(network)) for network in networks]

    @field_validator("allowed_origins")
    @classmethod
    def _origins(cls, origins: list[str]) -> list[str]:
        for origin in origins:
            if origin != "*" and not _ORIGIN.fullmatch(origin):
                raise ValueError(f"{origin!r} is no origin, such as https://app.example.com")
        return [origin.lower() for origin in origins]

    @field_validator("public_url")
    @classmethod
    def _canonical(cls, url: str | None) -> str | None:
        return None if url is None else read_public_url(url)

    @field_validator("mail_url")
    @classmethod
    def _mail_server(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None:
            read_mail_url(url.get_secret_value())
        return url

    @model_validator(mode="after")
    def _sender(self) -> "Settings":
        name, address = parseaddr(self.mail_from or "")
        if (self.mail_url is not None or self.mail_from is not None) and "@" not in address:
            raise ValueError("mail_from is the address of a sender, and is set with mail_url")
        if controls(name):
            raise ValueError("mail_from has no control characters")
        return self

    def require_own_secret(self) -> None:
        """Raise InvalidInput where the world could reach keys that are hashed with the secret in this file."""
        if self.key_secret.get_secret_value() == DEVELOPMENT_SECRET and self.host not in LOOPBACK:
            raise InvalidInput(
                "Set it to 32 random bytes or more before listening beyond this machine", path="RECOLLECT_KEY_SECRET"
            )

    @property
    def tells_metrics(self) -> bool:
        """Whether anybody is told this process's metrics."""
        return self.otlp_endpoint is not None or self.metrics_port is not None

    @property
    def base_url(self) -> str:
        """Where clients reach the gateway, without a slash at the end: `https://memory.example.com`."""
        return self.public_url or local_url(self.host, self.port)

    @property
    def migration_url(self) -> str:
        """The address that migrations and operator commands use."""
        return self.owner_database_url or self.database_url
