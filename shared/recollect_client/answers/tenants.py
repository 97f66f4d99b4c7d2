"""Answers about a tenant: its plan, credentials, people, jobs, usage, webhooks and audit log."""

from datetime import datetime
from typing import Any

from msgspec import Struct

from recollect_client.answers.pages import Tagged


class TenantSettings(Struct, frozen=True, kw_only=True):
    """A tenant's settings; None is the default of the deployment, or UTC."""

    retention_days: float | None
    default_retention_days: float
    time_zone: str | None


class Tenant(Tagged, frozen=True, kw_only=True):
    """The tenant of the credential."""

    id: str
    name: str
    slug: str
    plan: str
    status: str
    settings: TenantSettings
    created_at: datetime


class Quota(Struct, frozen=True, kw_only=True):
    """One quota of the plan, and what is used of it; None: without limit, or not reported."""

    quota: str
    limit: int | None
    used: int | None


class Rates(Struct, frozen=True, kw_only=True):
    """How often and how much at once the tenant may call; None: without limit."""

    requests_per_minute: int | None
    key_requests_per_minute: int | None
    concurrent_calls: int | None


class Plan(Tagged, frozen=True, kw_only=True):
    """The limits of the tenant's plan, and what is used of them."""

    plan: str
    quotas: list[Quota]
    rates: Rates


class Key(Tagged, frozen=True, kw_only=True):
    """An API key without its secret."""

    id: str
    name: str
    kind: str
    hint: str
    scopes: list[str]
    graphs: list[str] | None
    toolsets: list[str] | None
    default_graph: str | None
    requests_per_minute: int | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class IssuedKey(Key, frozen=True, kw_only=True):
    """An API key with its secret, which is returned only once."""

    secret: str


class Member(Tagged, frozen=True, kw_only=True):
    """A person in the tenant."""

    person_id: str
    name: str
    email: str
    role: str
    created_at: datetime


class JobError(Struct, frozen=True):
    """Why a job failed or, while it is running, why its current step is tried again."""

    code: str
    message: str


class Job(Tagged, frozen=True, kw_only=True):
    """A job: work that a worker does in steps."""

    id: str
    kind: str
    graph: str | None
    status: str
    done: int
    total: int | None
    result: dict[str, Any] | None
    error: JobError | None
    cancel_requested: bool
    output_bytes: int
    output_deleted: bool
    created_at: datetime
    created_by: str
    started_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One act of administration."""

    id: str
    at: datetime
    actor: str
    action: str
    objects: list[str]
    details: dict[str, Any]
    address: str | None
    trace_id: str | None


class UsageRow(Struct, frozen=True, kw_only=True):
    """The calls of one name in an hour, a day, a month, or the whole range."""

    since: datetime
    kind: str
    name: str
    calls: int
    errors: int
    passages: int
    bytes_received: int
    p50_ms: float | None = None
    p95_ms: float | None = None


class StoredCounts(Struct, frozen=True, kw_only=True):
    """What a graph holds now."""

    graph: str
    entities: int
    facts: int
    observations: int
    relations: int
    passages: int
    passage_bytes: int


class Webhook(Struct, frozen=True, kw_only=True):
    """A webhook without its secret."""

    id: str
    url: str
    events: list[str]
    graphs: list[str] | None
    description: str
    enabled: bool
    disabled_at: datetime | None
    disabled_reason: str | None
    failing_since: datetime | None
    previous_secret_ends_at: datetime | None
    created_at: datetime
    created_by: str


class IssuedWebhook(Webhook, frozen=True, kw_only=True):
    """A webhook with its secret, which is returned only once."""

    secret: str
