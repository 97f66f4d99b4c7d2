"""Use cases of another analysis of words: the labels of nodes are analysed anew, step by step, while both are found."""

from recollect.fairness.computing import map_yielding
from recollect.graph.nodes import store
from recollect.postgres.transactions import Transaction
from recollect.words.analysis import label_vector


async def rebuild_page(tx: Transaction, *, limit: int) -> int:
    """Analyse the tenant's next summaries and tags anew; return of how many nodes. Fewer than `limit`: none are left.

    Idempotent, and safe beside other workers and writes: a node that another transaction has locked is left out, and
    has the words of its labels afterwards, or comes again.
    """
    nodes = await store.list_other_labels(tx, limit=limit)
    labels = await map_yielding(nodes, lambda node: label_vector(node.summary, node.tags))
    if nodes:
        await store.replace_labels(tx, [node.id for node in nodes], labels)
    return len(nodes)
