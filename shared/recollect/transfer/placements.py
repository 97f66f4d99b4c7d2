"""Import placements: put entities under parents that stand elsewhere in the file."""

from collections.abc import Sequence

from recollect.graph.graphs.model import Revision
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import unique
from recollect.postgres.transactions import Transaction
from recollect.transfer.expired import refers_to_expired
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.model import CYCLE, NO_SUCH_PARENT, ImportProblem, ImportResult, Strategy
from recollect.transfer.records import Placement


async def import_placements(
    tx: Transaction, revision: Revision, items: Sequence[ParsedRecord], strategy: Strategy, *, unchanged: set[str]
) -> ImportResult:
    """Put entities under their parents, except those in `unchanged`. Only REPLACE takes an entity from another parent.

    Links to entities that have expired since are skipped.
    """
    links = [(i.where, i.record) for i in items if isinstance(i.record, Placement) and i.record.name not in unchanged]
    expired = {i.where for i in items if refers_to_expired(i.until, revision.at)}
    found = await naming.find_named_exactly(
        tx, revision.graph, unique(n for _, p in links for n in (p.name, p.parent_id))
    )
    ids = {name: node.id for name, node in found.items() if not node.placeholder}
    dangling = [where for where, p in links if not {p.name, p.parent_id} <= ids.keys() and where not in expired]
    problems = [ImportProblem(where, NO_SUCH_PARENT) for where in dangling]
    parents = {ids[p.name]: ids[p.parent_id] for _, p in links if {p.name, p.parent_id} <= ids.keys()}
    before = {
        head.id: head.fields.parent_id
        for page in await nodes.pages_of(tx, revision.graph, list(parents))
        for head in (await nodes.read_heads(tx, revision.graph, page)).values()
    }
    moving = {
        node_id: parent
        for node_id, parent in parents.items()
        if node_id in before and (strategy is Strategy.REPLACE or before[node_id] is None)
    }
    moved = await hierarchy.set_parents(tx, revision, moving)
    refused = {node_id for node_id in moving if node_id not in moved and before[node_id] != moving[node_id]}
    problems += [ImportProblem(where, CYCLE) for where, p in links if ids.get(p.name) in refused]
    return ImportResult(problems=tuple(problems))
