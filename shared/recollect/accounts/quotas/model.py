"""The limits that a tenant's plan sets to its stored data, and the error of a write that would exceed one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.accounts.plans.model import Plan
from recollect.errors import QuotaExceeded

NOUNS: Mapping[str, str] = {
    "graphs": "graphs",
    "nodes_per_graph": "entities, facts and placeholders in a graph",
    "observations": "observations",
    "stored_bytes": "bytes of what is stored, with rows, indexes, history and the log of changes",
    "embeddings_per_day": "passages embedded in a day (UTC)",
}
"""The things that each quota counts, by the quota's name in plans."""

_ADVICE: Mapping[str, str] = {
    "graphs": "Delete graphs",
    "nodes_per_graph": "Delete some of them, write to another graph",
    "observations": "Delete some of them",
    "stored_bytes": "Delete graphs, or delete memories and relations and compact",
    "embeddings_per_day": "Wait until midnight (UTC)",
}

ROW_BYTES: Mapping[str, int] = {
    "nodes": 800,
    "node_versions": 1_200,
    "observations": 1_400,
    "relations": 530,
    "aliases": 400,
    "changes": 300,
}
"""The bytes that a row of each table counts for in addition to its text, as `row_bytes_of` in the schema has them.

That is what a row took with its entries in indexes and its passages, but without their vectors, when 10,000 were
written. Of a revision of an entity each version counts, of a write its row in the log of changes.
"""


@dataclass(frozen=True, slots=True)
class Quotas:
    """The quotas of a plan; None is no limit."""

    plan: str
    graphs: int | None
    nodes_per_graph: int | None
    observations: int | None
    stored_bytes: int | None
    embeddings_per_day: int | None


@dataclass(frozen=True, slots=True)
class TenantTotals:
    """The totals of a tenant in all its graphs."""

    graphs: int
    observations: int
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """A quota with its limit and its use. None: no limit; or a use that this credential may not see."""

    name: str
    limit: int | None
    used: int | None


@dataclass(frozen=True, slots=True)
class TenantUse:
    """What a tenant uses of each thing that plans limit, for operators: the numbers of `QuotaUse` by the same names."""

    tenant_id: UUID
    graphs: int = 0
    nodes_per_graph: int = 0
    observations: int = 0
    stored_bytes: int = 0
    embeddings_per_day: int = 0


def quotas_used(plan: Plan, use: TenantUse) -> list[QuotaUse]:
    """Each quota of a plan with its limit and what a tenant uses of it."""
    return [QuotaUse(name, getattr(plan, name), getattr(use, name)) for name in NOUNS]


def exceeded(plan: str, quota: str, limit: int, *, used: int | None, asked: int) -> QuotaExceeded:
    """The error of a write that would add `asked` to `used`, beyond the limit; `used` None: not in the message."""
    rule = f"The plan {plan!r} allows {limit:,} {NOUNS[quota]}."
    usage = f"This would add {asked:,}." if used is None else f"There are {used:,}, and this would add {asked:,}."
    return QuotaExceeded(rule, usage, f"{_ADVICE[quota]}, or ask for a larger plan.")


def day_of(now: datetime) -> datetime:
    """The midnight (UTC) at which the day of this time began."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def until_tomorrow(now: datetime) -> timedelta:
    """How long it is until the next midnight (UTC)."""
    return day_of(now) + timedelta(days=1) - now
