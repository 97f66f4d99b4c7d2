"""Makes the older memories that a new one supersedes outdated, in the call that remembers the new one."""

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from recollect.errors import ErrorCode, InvalidInput, NotFound
from recollect.graph.graphs.model import Revision
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeHead, NodeRef
from recollect.graph.observations import service as observations
from recollect.graph.observations.model import Observation
from recollect.memory.model import NewMemory, Remembered
from recollect.memory.revising import outdate_nodes, outdate_observations
from recollect.postgres.transactions import Transaction


async def outdate_superseded(
    tx: Transaction,
    revision: Revision,
    items: Sequence[NewMemory],
    named: Mapping[str, NodeRef],
    remembered: Sequence[Remembered],
) -> None:
    """Mark the memories that items supersede as outdated, with the id of the new memory as the reason.

    `named`: the entities that items are about, by name; `remembered`: the outcome of each item. Memories that are
    outdated already stay as they are. Raises NotFound for an id that no memory of the graph has, and InvalidInput for
    the id of an entity, and for that of a memory that an item of this call remembers.
    """
    pairs = list(zip(items, remembered, strict=True))
    superseded = {old: new.id for item, new in reversed(pairs) for old in item.supersedes}  # The first one counts.
    if not superseded:
        return
    found = await observations.observations_by_id(tx, revision.graph, list(superseded))
    heads = await nodes.read_heads(tx, revision.graph, [old for old in superseded if old not in found])
    for path, old in _paths(items):
        _require_older_memory(path, found.get(old) or heads.get(old), items, named)
    reasons = {old: f"Superseded by {new}" for old, new in superseded.items()}
    await outdate_observations(tx, revision, [each for each in found.values() if each.is_active], reasons)
    await outdate_nodes(tx, revision, [head for head in heads.values() if head.status != "outdated"], reasons)


def _paths(items: Sequence[NewMemory]) -> Iterator[tuple[str, UUID]]:
    for index, item in enumerate(items):
        for number, old in enumerate(item.supersedes):
            yield f"items.{index}.supersedes.{number}", old


def _require_older_memory(
    path: str, old: Observation | NodeHead | None, items: Sequence[NewMemory], named: Mapping[str, NodeRef]
) -> None:
    if old is None:
        raise NotFound("There is no memory with this id", code=ErrorCode.NODE_NOT_FOUND, path=path)
    if isinstance(old, NodeHead) and old.name is not None:
        raise InvalidInput("This is an entity, and only memories are superseded: forget it instead", path=path)
    for index, item in enumerate(items):
        if _is_remembered_by(item, old, named):
            raise InvalidInput(f"The same call remembers this memory (items.{index}), which then holds", path=path)


def _is_remembered_by(item: NewMemory, old: Observation | NodeHead, named: Mapping[str, NodeRef]) -> bool:
    if (item.text, item.thread) != (old.content, old.thread):
        return False
    if isinstance(old, NodeHead):
        return not item.about
    return any(named[name].id == old.node_id for name in item.about)
