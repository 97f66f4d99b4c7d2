"""Settings of what workers do beside calls, and how long things are kept."""

from pydantic import Field
from pydantic_settings import BaseSettings


class UpkeepSettings(BaseSettings):
    """What workers do beside calls, and how long things are kept."""

    embedding_batch: int = Field(default=256, ge=1, le=2048, description="Passages embedded per batch.")
    embedding_lease_seconds: float = Field(
        default=60.0, gt=0, description="How long a worker holds passages that it is embedding before others may."
    )
    bulk_share_beside_calls: float = Field(
        default=0.25,
        ge=0.01,
        le=1,
        description="Share of the time that a worker takes for what it does in bulk (backlogs of passages, jobs) while "
        "other tenants call. 1: all of it, for workers that share no core and a PostgreSQL with cores to spare.",
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
