"""Settings of how much is at work at once, and how much one call may take and answer."""

from pydantic import Field
from pydantic_settings import BaseSettings


class CallsSettings(BaseSettings):
    """How much is at work at once, and how much one call may take and answer."""

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
    streams: int = Field(
        default=500,
        ge=0,
        le=100_000,
        description="Streams of change notifications that a gateway has open at once, at most.",
    )
    streams_per_tenant: int = Field(
        default=100, ge=0, le=100_000, description="Those of one tenant, at most, at one gateway."
    )
    streams_per_key: int = Field(
        default=20, ge=0, le=100_000, description="Those of one key, or of one person, at most, at one gateway."
    )
    stream_check_seconds: float = Field(
        default=30.0,
        gt=0,
        le=600,
        description="How often a stream to which nothing was sent looks whether its credential still holds, and "
        "whether something was written that Redis did not tell of.",
    )
    stream_keep_alive_seconds: float = Field(
        default=15.0,
        gt=0,
        le=600,
        description="How long nothing is sent on a stream of `/v1`, or to who waits for a tool, before a comment "
        "is, so that proxies keep the connection open.",
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
