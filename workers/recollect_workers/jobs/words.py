"""Analyse the words of passages and of labels anew that a former release wrote."""

import random
from uuid import UUID

from recollect.accounts.identity.model import worker_caller
from recollect.graph.nodes import label_rebuild
from recollect.graph.passage_words import word_rebuild
from recollect_workers.context import WorkerContext
from recollect_workers.failure_logging import FailureLogger

MAX_PAGES = 10
"""Pages of one tenant before others have their turn."""


async def rebuild(context: WorkerContext) -> None:
    """Analyse anew what a former analysis found words in, a few pages of each tenant in turn, until nothing is left."""
    while await _round(context):
        pass


async def _round(context: WorkerContext) -> bool:
    """Some pages of each tenant, in random order; whether any may have more."""
    tenants = await word_rebuild.tenants_with_other_words(context.database)
    random.shuffle(tenants)
    more = False
    for tenant_id in context.until_stopping(tenants):
        with FailureLogger("words not analysed", tenant_id):
            for _ in context.until_stopping(range(MAX_PAGES)):
                if await _rebuild_page(context, tenant_id) < word_rebuild.REBUILT_AT_ONCE:
                    break
            else:
                more = True
    return more


async def _rebuild_page(context: WorkerContext, tenant_id: UUID) -> int:
    """A page of labels and one of passages, each in its transaction: none waits for locks with those of the other."""
    async with (
        context.part(tenant_id),
        context.database.transaction(worker_caller(tenant_id), durable=False) as tx,
    ):
        labels = await label_rebuild.rebuild_page(tx, limit=word_rebuild.REBUILT_AT_ONCE)
    async with (
        context.part(tenant_id),
        context.database.transaction(worker_caller(tenant_id), durable=False) as tx,
    ):
        return max(labels, await word_rebuild.rebuild_page(tx))
