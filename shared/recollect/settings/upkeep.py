"""Settings of the work of workers, and of retention."""

from pydantic import Field
from pydantic_settings import BaseSettings


class UpkeepSettings(BaseSettings):
    """The work of workers, and retention."""

    embedding_batch: int = Field(
        default=256, ge=1, le=2048, description="Maximum number of passages that a worker embeds in one batch."
    )
    embedding_lease_seconds: float = Field(
        default=60.0,
        gt=0,
        description="Time, in seconds, for which a worker claims the passages that it embeds. After that, other "
        "workers may take them.",
    )
    bulk_share_beside_calls: float = Field(
        default=0.25,
        ge=0.01,
        le=1,
        description="Share of its time that a worker spends on bulk work (backlogs of passages, jobs) while other "
        "tenants call. Set it to 1 for workers that share no core with gateways and whose PostgreSQL has cores to "
        "spare.",
    )
    vector_index_memories: int = Field(
        default=10_000,
        ge=100,
        description="Minimum number of memories for a graph to get a vector index. Smaller graphs are compared "
        "exactly.",
    )
    vector_index_memory_mb: int = Field(
        default=512,
        ge=1,
        le=2_000_000,
        description="Memory that PostgreSQL may use to build a vector index, in MB. An index that does not fit is "
        "built several times as slowly: a million memories need 1,300 MB with wordllama and 1,500 MB with minilm.",
    )
    recall_audit_share: float = Field(
        default=0.005,
        ge=0,
        le=1,
        description="Share of the recalls served by a vector index that are also answered exactly, to measure the "
        "accuracy of the index (metric `recollect.recall.audit`).",
    )
    index_care_seconds: int = Field(
        default=60,
        ge=1,
        le=86_400,
        description="Time, in seconds, between two checks of the worker for graphs that grew to "
        "`RECOLLECT_VECTOR_INDEX_MEMORIES` or shrank.",
    )
    sweep_seconds: int = Field(
        default=10,
        ge=1,
        le=60,
        description="Time, in seconds, between two checks of the worker for pending work of which it was not notified.",
    )
    max_jobs: int = Field(default=4, ge=1, le=100, description="Maximum number of jobs that one worker runs at once.")
    jobs_per_tenant: int = Field(
        default=2,
        ge=1,
        le=100,
        description="Maximum number of jobs of one tenant that run at once, on all workers together.",
    )
    job_lease_seconds: float = Field(
        default=60.0,
        gt=0,
        description="Maximum run time of one step of a job, in seconds. If the worker of a job is killed, another one "
        "takes the job over after this time.",
    )
    job_retention_days: float = Field(
        default=7.0, gt=0, le=3650, description="Time, in days, for which a finished job and its output are kept."
    )
    retention_days: float = Field(
        default=30.0,
        ge=0,
        le=36_500,
        description="Minimum time, in days, for which the past can be read: compaction removes what was deleted or "
        "superseded longer ago. Expired memories stay archived for the same time before the worker deletes them. A "
        "tenant can have a retention of its own.",
    )
    usage_flush_seconds: float = Field(
        default=5.0,
        gt=0,
        le=3600,
        description="Time, in seconds, between two writes of a gateway's counts of calls and of the use of keys. A "
        "gateway that is killed loses what it has counted since the last write.",
    )
    usage_retention_days: float = Field(
        default=400.0, ge=1, le=36_500, description="Time, in days, for which the hourly usage of tenants is kept."
    )
    webhook_retention_days: float = Field(
        default=14.0,
        ge=5,
        le=365,
        description="Time, in days, for which deliveries of webhooks are kept, sent or not. Until then, they can be "
        "listed and replayed.",
    )
    webhook_tenants_at_once: int = Field(
        default=16,
        ge=1,
        le=100,
        description="Maximum number of tenants whose webhooks one worker sends at once, with up to four requests of "
        "each.",
    )
    audit_retention_days: float = Field(
        default=365.0,
        ge=30,
        le=36_500,
        description="Time, in days, for which the audit log of tenants is kept. The database keeps the last 30 days "
        "whatever the setting.",
    )
    compaction_enabled: bool = Field(
        default=True,
        description="Whether the worker checks every graph once a day, and removes what is older than the retention. "
        "If false, only `compact` removes it.",
    )
    job_storage_bytes: int = Field(
        default=1_000_000_000,
        ge=1_048_576,
        description="Maximum size of the inputs and outputs that are kept for the jobs of one tenant, in bytes, "
        "or what its plan allows in graphs (`stored_bytes`), if that is less. Beyond it, new ones are refused (413).",
    )
