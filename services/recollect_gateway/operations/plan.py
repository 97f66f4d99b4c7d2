"""A tenant's plan and how much of it is used, as tool and route answer it."""

from datetime import datetime

from msgspec import Struct

from recollect.accounts.quotas import service as quotas
from recollect.postgres.transactions import Transaction


class QuotaBody(Struct, frozen=True):
    """A quota by its name. `limit` null: no limit. `used` null: hidden from a key that is confined to some graphs."""

    quota: str
    limit: int | None
    used: int | None


class RatesBody(Struct, frozen=True):
    """The limits on requests a minute, of the tenant and of the asking key, and on concurrent calls; null: no limit."""

    requests_per_minute: int | None
    key_requests_per_minute: int | None
    concurrent_calls: int | None


class PlanBody(Struct, frozen=True):
    """The tenant's plan. The use of `nodes_per_graph` is that of the fullest graph that the key reaches."""

    plan: str
    quotas: list[QuotaBody]
    rates: RatesBody


async def read_plan(tx: Transaction, now: datetime) -> PlanBody:
    """The plan's quotas and rates for the caller, and how much of the quotas is used now."""
    plan, uses = await quotas.list_use(tx, now)
    rates = tx.caller.rates
    return PlanBody(
        plan,
        [QuotaBody(use.name, use.limit, use.used) for use in uses],
        RatesBody(rates.requests_per_minute, rates.key_requests_per_minute, rates.concurrent_calls),
    )
