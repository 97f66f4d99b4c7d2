"""Import which entities are different from which, however alike they are."""

from collections.abc import Sequence
from uuid import UUID

from recollect.curation.dismissals import service as dismissals
from recollect.curation.dismissals.model import MAX_DISMISSALS, Pair
from recollect.graph.graphs.model import Revision
from recollect.graph.nodes import naming
from recollect.graph.nodes.model import unique
from recollect.postgres.transactions import Transaction
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.model import ImportProblem, ImportResult
from recollect.transfer.records import EntityRecord

TOO_MANY = f"{MAX_DISMISSALS:,} pairs of this graph are dismissed"


async def import_dismissals(tx: Transaction, revision: Revision, items: Sequence[ParsedRecord]) -> ImportResult:
    """Dismiss the pairs that the entities among some items name, whatever the strategy: it takes nothing away.

    A pair of which one entity is not there is passed over: what was exported may have been a part of a graph.
    """
    named = [(item, item.record) for item in items if isinstance(item.record, EntityRecord)]
    named = [(item, record) for item, record in named if record.different_from]
    if not named:
        return ImportResult()
    found = await naming.find_named_exactly(
        tx, revision.graph, unique(name for _, record in named for name in (record.name, *record.different_from))
    )
    ids = {name: node.id for name, node in found.items() if not node.placeholder}
    locations = {pair: item.where for item, record in named for pair in _pairs(record, ids)}
    left_out = await dismissals.dismiss_all(tx, revision.graph, list(locations))
    where = unique(locations[pair] for pair in left_out)
    return ImportResult(
        problems=tuple(ImportProblem(f"{location}.differentFrom", TOO_MANY, of_part=True) for location in where)
    )


def _pairs(record: EntityRecord, ids: dict[str, UUID]) -> list[Pair]:
    others = [ids[name] for name in record.different_from if name in ids and record.name in ids]
    return [dismissals.pair_of(ids[record.name], other) for other in others if other != ids[record.name]]
