"""Use cases of quotas: refuse a write that would exceed one, and report the use.

A write is checked at its end, when everything that it adds is in the tables. For a quota of all graphs together, one
transaction of the tenant at a time has the turn, from the check to the commit. So the sum that it reads is complete,
and no two transactions exceed the limit together. The turn is the last lock that a write takes, so that its holder
never waits for another lock.

If the plan has no such limit, or nothing grows, no turn is taken and nothing is read.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from recollect.accounts.identity.model import WORKER
from recollect.accounts.quotas import store
from recollect.accounts.quotas.model import Quotas, QuotaUse, TenantTotals, TenantUse, day_of, exceeded
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.transactions import Transaction

STORING = "what is stored"
EMBEDDING = "embeddings"
"""The names of the turns."""


def require_nodes(tx: Transaction, quotas: Quotas, *, nodes: int, added: int) -> None:
    """Raise QuotaExceeded if a graph has too many nodes and this transaction, which holds its lock, added some."""
    limit = quotas.nodes_per_graph
    if limit is not None and added > 0 and nodes > limit:
        raise exceeded(quotas.plan, "nodes_per_graph", limit, used=nodes - added, asked=added)


async def require_room(tx: Transaction, quotas: Quotas, added: TenantTotals) -> None:
    """Raise QuotaExceeded if the tenant exceeds a quota to whose use this transaction added, net.

    Call it last in a transaction. Writes by the worker are not refused.
    """
    limits = asdict(quotas)
    grown = {name: amount for name, amount in asdict(added).items() if amount > 0 and limits[name] is not None}
    if not grown or tx.caller.subject == WORKER:
        return
    await store.lock_quota(tx, STORING)
    totals = asdict(await store.count_totals(tx))
    for name, amount in grown.items():
        if totals[name] > limits[name]:
            used = None if tx.caller.graphs is not None else totals[name] - amount
            raise exceeded(quotas.plan, name, limits[name], used=used, asked=amount)


async def require_room_for_graph(tx: Transaction) -> None:
    """Raise QuotaExceeded if the tenant has too many graphs and this transaction made one. Call it last."""
    await require_room(tx, await store.find_quotas(tx), TenantTotals(graphs=1, observations=0, stored_bytes=0))


async def embeddings_left(tx: Transaction, now: datetime) -> int | None:
    """The number of passages of the tenant that may still be embedded on the day (UTC) of `now`; None: no limit."""
    limit = (await store.find_quotas(tx)).embeddings_per_day
    return None if limit is None else max(limit - await store.count_embedded(tx, day_of(now)), 0)


async def take_embeddings(tx: Transaction, now: datetime, wanted: int) -> int:
    """How many of `wanted` passages may be embedded in this transaction.

    If there is a limit, nobody else embeds passages of the tenant until this transaction has ended. Call it before
    anything is locked, and count the embedded passages as of `now`.
    """
    if (await store.find_quotas(tx)).embeddings_per_day is None:
        return wanted
    await store.lock_quota(tx, EMBEDDING)
    left = await embeddings_left(tx, now)
    return wanted if left is None else min(wanted, left)


async def list_use(tx: Transaction, now: datetime) -> tuple[str, list[QuotaUse]]:
    """The name of the tenant's plan, and each quota with its use.

    A credential that is confined to some graphs gets no figure of the whole tenant. The figure of `nodes_per_graph` is
    that of the largest graph among those that it may use.
    """
    quotas = await store.find_quotas(tx)
    used: dict[str, int] = {"nodes_per_graph": await store.most_nodes(tx)}
    if tx.caller.graphs is None:
        used |= asdict(await store.count_totals(tx))
        used["embeddings_per_day"] = await store.count_embedded(tx, day_of(now))
    limits = asdict(quotas)
    return limits.pop("plan"), [QuotaUse(name, limit, used.get(name)) for name, limit in limits.items()]


async def list_use_of_tenants(operator: Operator, tenant_ids: Sequence[UUID], now: datetime) -> dict[UUID, TenantUse]:
    """What each of these tenants of the operator's cell uses, by its id; numbers only, of 200 tenants at most."""
    found = {use.tenant_id: use for use in await store.use_of_tenants(operator, tenant_ids, day_of(now))}
    return {tenant_id: found.get(tenant_id, TenantUse(tenant_id)) for tenant_id in tenant_ids}
