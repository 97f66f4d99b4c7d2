"""Import facts. Two facts with the same text, thread and status are the same."""

from collections.abc import Sequence

from recollect.errors import Conflict, ErrorCode
from recollect.graph.graphs.model import Revision
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite
from recollect.platform.transactions import Transaction
from recollect.transfer import store
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.merged_records import enriched, fields_of, merge_fact_records
from recollect.transfer.model import ImportResult, Strategy
from recollect.transfer.records import FactKey, FactRecord


async def import_facts(
    tx: Transaction, revision: Revision, items: Sequence[ParsedRecord], strategy: Strategy
) -> ImportResult:
    """Write the facts among some items; return the counts. Raises Conflict under FAIL for one that is there."""
    wanted: dict[FactKey, FactRecord] = {}
    places: dict[FactKey, str] = {}
    for item in items:
        assert isinstance(item.record, FactRecord)
        end = item.record.end
        if end in wanted and strategy is Strategy.FAIL:
            raise _known(item.where)
        if end in wanted and strategy is Strategy.MERGE:
            wanted[end] = merge_fact_records(wanted[end], item.record)
        elif end not in wanted or strategy is Strategy.REPLACE:
            wanted[end] = item.record
        places.setdefault(end, item.where)
    found = await store.find_facts(tx, revision.graph, list(wanted)) if wanted else {}
    if found and strategy is Strategy.FAIL:
        raise _known(next(where for end, where in places.items() if end in found))
    fresh = [record for end, record in wanted.items() if end not in found]
    fields = [fields_of(record) for record in fresh]
    await nodes.create_nodes(tx, revision, fields, began=[record.created_at for record in fresh])
    updated = 0
    if strategy in (Strategy.MERGE, Strategy.REPLACE) and found:
        heads = await nodes.read_heads(tx, revision.graph, list(found.values()))
        rewrites = []
        for end, node_id in found.items():
            if node_id not in heads:  # It has just expired.
                continue
            head, fields_then = heads[node_id], fields_of(wanted[end])
            if strategy is Strategy.MERGE:
                fields_then = enriched(head.fields, fields_then)
            if not fields_then.is_same_as(head.fields):
                rewrites.append(Rewrite(head, fields_then))
        await nodes.rewrite(tx, revision, rewrites)
        updated = len(rewrites)
    skipped = len(items) - len(fresh) - updated
    return ImportResult(facts_created=len(fresh), facts_updated=updated, facts_skipped=skipped)


def _known(where: str) -> Conflict:
    return Conflict("There is a fact that says the same already.", code=ErrorCode.NAME_TAKEN, path=where)
