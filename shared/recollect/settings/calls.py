"""Settings of how many calls run at once, and how much one call may take and answer."""

from pydantic import Field
from pydantic_settings import BaseSettings


class CallsSettings(BaseSettings):
    """How many calls run at once, and how much one call may take and answer."""

    concurrent_calls_per_tenant: int = Field(
        default=100,
        ge=1,
        le=100_000,
        description="Maximum number of calls of one tenant that a gateway serves at once, unless the plan of the "
        "tenant sets another number.",
    )
    calls_at_work: int = Field(
        default=8,
        ge=1,
        le=1000,
        description="Maximum number of calls that a gateway works on at once, of all tenants together. Other calls "
        "wait for their turn; the tenant that was served least is next.",
    )
    calls_at_work_beside_others: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="Maximum number of calls of one tenant that a gateway works on at once while other tenants have "
        "sent calls in the last five seconds. A tenant that is alone may use all of `RECOLLECT_CALLS_AT_WORK`.",
    )
    call_wait_seconds: float = Field(
        default=30.0,
        gt=0,
        description="Maximum time, in seconds, for which a call waits for its turn. After that, it fails with `busy` "
        "and can be tried again.",
    )
    streams: int = Field(
        default=500,
        ge=0,
        le=100_000,
        description="Maximum number of open streams of change notifications of a gateway. Further ones are answered "
        "429.",
    )
    streams_per_tenant: int = Field(
        default=100, ge=0, le=100_000, description="Maximum number of open streams of one tenant at one gateway."
    )
    streams_per_key: int = Field(
        default=20,
        ge=0,
        le=100_000,
        description="Maximum number of open streams of one key, or of one person, at one gateway.",
    )
    stream_check_seconds: float = Field(
        default=30.0,
        gt=0,
        le=600,
        description="Time, in seconds, after which a stream on which nothing was sent checks whether its credential "
        "is still valid, and whether there were writes that Redis did not report.",
    )
    stream_keep_alive_seconds: float = Field(
        default=15.0,
        gt=0,
        le=600,
        description="Time, in seconds, after which a comment is sent on a silent stream of `/v1`, or to a client that "
        "waits for a tool, so that proxies keep the connection open.",
    )
    rate_limit_wait_seconds: float = Field(
        default=0.2,
        gt=0,
        description="Maximum time, in seconds, for which a request waits for Redis to count it. After that, the "
        "gateway counts by itself until Redis answers again.",
    )
    rate_limit_local_share: float = Field(
        default=0.25,
        gt=0,
        le=1,
        description="Share of each rate limit that a gateway grants by itself while Redis is unreachable. With more "
        "than four gateways, set it to less than the default.",
    )
    max_request_bytes: int = Field(
        default=4 * 1024 * 1024,
        ge=1024,
        description="Maximum size of a request body, in bytes. A larger one is answered 413.",
    )
    max_reply_items: int = Field(
        default=10_000,
        ge=1,
        description="Maximum number of entities, observations and relations in one reply. Beyond it, the call fails "
        "and asks the caller to read in pages.",
    )
    max_reply_bytes: int = Field(
        default=2_000_000,
        ge=1024,
        description="Maximum size of one reply of a tool that only reads, in bytes of JSON. Beyond it, the call fails.",
    )
    compute_seconds: float = Field(
        default=10.0,
        gt=0,
        description="Maximum processor time, in seconds, of a call's long computations (comparing entities, "
        "enumerating paths). Beyond it, the call fails. A process runs two computations at once, one of each tenant; "
        "others wait for their turn.",
    )
    max_metadata_size: int = Field(
        default=100_000, ge=2, description="Maximum size of the metadata of one item, in bytes of JSON."
    )
    max_text_length: int = Field(
        default=10_000,
        ge=1,
        le=100_000,
        description="Maximum length of the text of a node in toolset `facts`, in characters.",
    )
    search_default_limit: int = Field(
        default=10,
        ge=1,
        le=100,
        description="Default of the argument `limit` of `search` in toolset `facts`.",
    )
    similarity_threshold: float = Field(
        default=0.75,
        ge=0,
        le=1,
        description="Default of the argument `threshold` of `find_similar` in toolset `facts`, a cosine similarity.",
    )
    subgraph_default_max_nodes: int = Field(
        default=20,
        ge=1,
        le=200,
        description="Default of the argument `max_nodes` of `get_context` in toolset `facts`.",
    )
    min_ttl_days: float = Field(
        default=0.0,
        ge=0,
        description="Lower bound of the argument `ttl_days` in toolset `facts`, in days. The argument must be greater "
        "than this.",
    )
    max_ttl_days: float = Field(
        default=3650.0, gt=0, le=36_500, description="Maximum of the argument `ttl_days` in toolset `facts`, in days."
    )
