"""Use cases of another analysis of words: passages of before are analysed anew, step by step, while both are found.

The worker does this after an upgrade. The days that their texts name are found, too. What is live also goes through its
queue, without being embedded again: that replaces the words around each passage.
"""

from collections.abc import Sequence
from itertools import groupby
from uuid import UUID

from recollect.graph.passage_words import store
from recollect.graph.passage_words.model import Reanalysis
from recollect.graph.passages import service as passages
from recollect.jobs.model import EMBED_PASSAGES
from recollect.postgres.database import Database
from recollect.postgres.transactions import Transaction

REBUILT_AT_ONCE = 200
"""Passages that one transaction analyses anew."""


async def tenants_with_other_words(db: Database) -> list[UUID]:
    """Tenants with passages that a former analysis of words made."""
    async with db.system() as session:
        return await store.tenants_with_other_words(session)


async def rebuild_page(tx: Transaction) -> int:
    """Analyse the tenant's next passages anew; return how many. 0: there are none left.

    Idempotent, and safe beside other workers: a passage that another has analysed meanwhile stays as it is.
    """
    page = await store.list_other_words(tx, limit=REBUILT_AT_ONCE)
    # Graphs in order of their ids, each locked before its passages, as wherever several are locked.
    in_order = sorted(page, key=lambda passage: (passage.graph_id, passage.id))
    for graph_id, of_graph in groupby(in_order, key=lambda passage: passage.graph_id):
        await _rebuild(tx, graph_id, list(of_graph))
    if page:
        tx.wake(EMBED_PASSAGES)
    return len(page)


async def _rebuild(tx: Transaction, graph_id: UUID, analysed: Sequence[Reanalysis]) -> None:
    await passages.raise_index_epoch(tx, graph_id)
    await store.replace_words(tx, graph_id, analysed)
    if not await store.any_other_words(tx, graph_id):
        await store.forget_counts(tx, graph_id)
