"""Relate new facts to similar entities, once they are embedded.

The queue is in PostgreSQL: a fact leaves it in the transaction that relates it, so that none is lost or related twice.
"""

import time
from uuid import UUID

from recollect.accounts.identity.model import worker_caller
from recollect.graph.graphs import service as graphs
from recollect.memory import links
from recollect.telemetry.tracing import continued_span
from recollect_workers.context import WorkerContext
from recollect_workers.failure_logging import FailureLogger

LINK_FACTS = "auto_link"
"""The operation that the change log names."""

FACTS_AT_ONCE = 20
SLICE_SECONDS = 3.0
"""How long a tenant's facts are related before other tenants have their turn."""


async def sweep(context: WorkerContext) -> None:
    """Relate all waiting facts: a turn for each tenant, until none has more.

    Raises Unavailable when the database is unreachable.
    """
    context.links_due.clear()
    more = True
    while more and not context.stopping.is_set():
        tenants = await links.tenants_with_unlinked(context.database)
        more = any([await _run_slice(context, tenant_id) for tenant_id in context.until_stopping(tenants)])


async def _run_slice(context: WorkerContext, tenant_id: UUID) -> bool:
    with FailureLogger("facts not related", tenant_id):
        return await link_facts(context, tenant_id)
    return False


async def link_facts(context: WorkerContext, tenant_id: UUID) -> bool:
    """Relate a tenant's facts for SLICE_SECONDS; whether there may be more."""
    caller, deadline = worker_caller(tenant_id), time.monotonic() + SLICE_SECONDS
    with continued_span(LINK_FACTS, {}) as span:
        span.set_attribute("recollect.tenant.id", str(tenant_id))
        async with context.database.transaction(caller, read_only=True) as tx:
            graph_ids = await links.graphs_with_unlinked(tx)
        for graph_id in graph_ids:
            count = FACTS_AT_ONCE
            while count == FACTS_AT_ONCE:
                if context.stopping.is_set() or time.monotonic() >= deadline:
                    return True
                async with (
                    context.database.transaction(caller) as tx,
                    graphs.write_graph_of(tx, graph_id, LINK_FACTS) as revision,
                ):
                    count = await links.link_similar(tx, revision, limit=FACTS_AT_ONCE)
    return bool(graph_ids)
