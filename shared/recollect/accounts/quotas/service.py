"""Use cases of quotas: refuse a write that would pass one, and tell what is used.

A write asks at its end, when all that it adds is in the tables. What is bounded in all graphs together is added to by
one transaction of the tenant at a time, from that question to the commit: so the sum that it reads lacks nothing, and
no two pass the limit together. That turn is the last lock that a write takes, so that nobody who has it waits for
another.
Where the plan sets no such limit, or nothing grows, no turn is taken and nothing is asked.
"""

from dataclasses import asdict
from datetime import datetime

from recollect.accounts.identity.model import WORKER
from recollect.accounts.quotas import store
from recollect.accounts.quotas.model import Quotas, QuotaUse, TenantTotals, day_of, exceeded
from recollect.platform.transactions import Transaction

STORING = "what is stored"
EMBEDDING = "embeddings"
"""What tenants take turns at."""


def require_nodes(tx: Transaction, quotas: Quotas, *, nodes: int, added: int) -> None:
    """Raise QuotaExceeded where a graph has too many nodes, of which this transaction added some under its lock."""
    limit = quotas.nodes_per_graph
    if limit is not None and added > 0 and nodes > limit:
        raise exceeded(quotas.plan, "nodes_per_graph", limit, used=nodes - added, asked=added)


async def require_room(tx: Transaction, quotas: Quotas, added: TenantTotals) -> None:
    """Raise QuotaExceeded where the tenant has too much of something that this transaction added to, net.

    To be asked last in a transaction. What the service does of its own accord is not refused.
    """
    limits = asdict(quotas)
    grown = {name: by for name, by in asdict(added).items() if by > 0 and limits[name] is not None}
    if not grown or tx.caller.subject == WORKER:
        return
    await store.take_turn(tx, STORING)
    totals = asdict(await store.count_totals(tx))
    for name, by in grown.items():
        if totals[name] > limits[name]:
            used = None if tx.caller.graphs is not None else totals[name] - by
            raise exceeded(quotas.plan, name, limits[name], used=used, asked=by)


async def require_room_for_graph(tx: Transaction) -> None:
    """Raise QuotaExceeded where the tenant has too many graphs, of which this transaction made one. Asked last."""
    await require_room(tx, await store.find_quotas(tx), TenantTotals(graphs=1, observations=0, stored_bytes=0))


async def embeddings_left(tx: Transaction, now: datetime) -> int | None:
    """How many passages of the tenant may still be given vectors on the day (UTC) of `now`; None: no limit."""
    limit = (await store.find_quotas(tx)).embeddings_per_day
    return None if limit is None else max(limit - await store.count_embedded(tx, day_of(now)), 0)


async def take_embeddings(tx: Transaction, now: datetime, wanted: int) -> int:
    """How many of as many passages may be given vectors in this transaction.

    Where there is a limit, nobody else gives any to the tenant's until this transaction has ended. It is to be asked
    before anything is locked, and what is given to be counted as of `now`.
    """
    if (await store.find_quotas(tx)).embeddings_per_day is None:
        return wanted
    await store.take_turn(tx, EMBEDDING)
    left = await embeddings_left(tx, now)
    return wanted if left is None else min(wanted, left)


async def list_use(tx: Transaction, now: datetime) -> tuple[str, list[QuotaUse]]:
    """The name of the tenant's plan, and each quota with what is used of it.

    A credential that is confined to some graphs is told no figure of the whole tenant; of nodes that of the graph which
    has the most, among those that it reaches.
    """
    quotas = await store.find_quotas(tx)
    used: dict[str, int] = {"nodes_per_graph": await store.most_nodes(tx)}
    if tx.caller.graphs is None:
        used |= asdict(await store.count_totals(tx))
        used["embeddings_per_day"] = await store.count_embedded(tx, day_of(now))
    limits = asdict(quotas)
    return limits.pop("plan"), [QuotaUse(name, limit, used.get(name)) for name, limit in limits.items()]
