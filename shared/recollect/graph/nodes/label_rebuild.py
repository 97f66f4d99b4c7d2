"""Use cases of a new analysis of words: rebuilds the labels of nodes step by step.

Labels of the old and of the new analysis are found until all are rebuilt.
"""

from recollect.graph.nodes import store
from recollect.postgres.transactions import Transaction


async def rebuild_page(tx: Transaction, *, limit: int) -> int:
    """Analyse the summaries and tags of the tenant's next nodes; return how many. Fewer than `limit`: none are left.

    It is idempotent and safe beside other workers and writes: a node that another transaction has locked is skipped.
    Either that transaction analyses its labels, or a later call does.
    """
    analysed = await store.list_other_labels(tx, limit=limit)
    if analysed:
        await store.replace_labels(tx, [node_id for node_id, _ in analysed], [labels for _, labels in analysed])
    return len(analysed)
