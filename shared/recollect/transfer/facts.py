"""Import facts. Two facts with the same text, thread and status are the same."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from recollect.errors import Conflict, ErrorCode
from recollect.graph.graphs.model import Revision
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import Rewrite
from recollect.postgres.transactions import Transaction
from recollect.transfer import store
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.merged_records import enriched, fields_of, merge_fact_records
from recollect.transfer.model import ImportResult, Strategy
from recollect.transfer.records import FactKey, FactRecord


async def import_facts(
    tx: Transaction, revision: Revision, items: Sequence[ParsedRecord], strategy: Strategy, *, is_call: bool = False
) -> ImportResult:
    """Write the facts among some items; return the counts.

    Raises Conflict under FAIL for a fact that exists; TooLarge, where `is_call`, for existing ones that are too large
    together.
    """
    records: dict[FactKey, FactRecord] = {}
    first_locations: dict[FactKey, str] = {}
    for item in items:
        assert isinstance(item.record, FactRecord)
        end = item.record.end
        if end in records and strategy is Strategy.FAIL:
            raise _fact_exists(item.where)
        if end in records and strategy is Strategy.MERGE:
            records[end] = merge_fact_records(records[end], item.record)
        elif end not in records or strategy is Strategy.REPLACE:
            records[end] = item.record
        first_locations.setdefault(end, item.where)
    found = await store.find_facts(tx, revision.graph, list(records)) if records else {}
    if found and strategy is Strategy.FAIL:
        raise _fact_exists(next(where for end, where in first_locations.items() if end in found))
    new_records = [record for end, record in records.items() if end not in found]
    fields = [fields_of(record) for record in new_records]
    await nodes.create_nodes(tx, revision, fields, began=[record.created_at for record in new_records])
    updated = 0
    if strategy in (Strategy.MERGE, Strategy.REPLACE) and found:
        if is_call:
            await nodes.require_readable(tx, revision.graph, list(found.values()))
        known = {node_id: records[end] for end, node_id in found.items()}
        for page in await nodes.pages_of(tx, revision.graph, list(known)):
            updated += await _rewrite(tx, revision, {node_id: known[node_id] for node_id in page}, strategy)
    skipped = len(items) - len(new_records) - updated
    return ImportResult(facts_created=len(new_records), facts_updated=updated, facts_skipped=skipped)


async def _rewrite(tx: Transaction, revision: Revision, known: Mapping[UUID, FactRecord], strategy: Strategy) -> int:
    """Give existing facts, by id, what their records say; return how many changed. Those that just expired stay."""
    heads = await nodes.read_heads(tx, revision.graph, list(known))
    rewrites = [
        Rewrite(head, enriched(head.fields, fields) if strategy is Strategy.MERGE else fields)
        for head in heads.values()
        for fields in (fields_of(known[head.id]),)
    ]
    rewrites = await nodes.differing(rewrites)
    await nodes.rewrite(tx, revision, rewrites)
    return len(rewrites)


def _fact_exists(where: str) -> Conflict:
    return Conflict("There is already a fact that says the same.", code=ErrorCode.NAME_TAKEN, path=where)
