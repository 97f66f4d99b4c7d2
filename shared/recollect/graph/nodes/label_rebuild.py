"""Use cases of a new analysis of words: rebuilds the labels of nodes step by step.

Labels of the old and of the new analysis are found until all are rebuilt.
"""

from recollect.fairness.computing import map_yielding
from recollect.graph.nodes import store
from recollect.postgres.transactions import Transaction
from recollect.words.analysis import label_vector


async def rebuild_page(tx: Transaction, *, limit: int) -> int:
    """Analyse the summaries and tags of the tenant's next nodes; return how many. Fewer than `limit`: none are left.

    It is idempotent and safe beside other workers and writes: a node that another transaction has locked is skipped.
    Either that transaction analyses its labels, or a later call does.
    """
    nodes = await store.list_other_labels(tx, limit=limit)
    labels = await map_yielding(nodes, lambda node: label_vector(node.summary, node.tags))
    if nodes:
        await store.replace_labels(tx, [node.id for node in nodes], labels)
    return len(nodes)
