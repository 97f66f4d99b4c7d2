"""Use cases of import: write a batch of items. Exports are in `exports.py`."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.errors import InvalidInput
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.nodes import naming
from recollect.graph.nodes.model import unique
from recollect.postgres.transactions import Transaction
from recollect.transfer.dismissals import import_dismissals
from recollect.transfer.edges import import_relations
from recollect.transfer.entities import import_entities, import_later_parts
from recollect.transfer.expired import is_expired, with_expiries
from recollect.transfer.facts import import_facts
from recollect.transfer.formats.decoding import ParsedRecord
from recollect.transfer.model import ImportProblem, ImportResult, Strategy
from recollect.transfer.placements import import_placements
from recollect.transfer.records import (
    AnyRecord,
    EntityRecord,
    FactRecord,
    Placement,
    RelationRecord,
    names_in,
    renamed,
)


async def import_batch(
    tx: Transaction, graph_name: str, items: Sequence[ParsedRecord], strategy: Strategy
) -> ImportResult:
    """Write items in one revision, as one call. Items that cannot be stored become problems of the result.

    Raises Forbidden, Conflict under FAIL, and TooLarge where what it would change is too large for one call
    (`nodes.require_readable`): a job may take it.
    """
    if not items:  # only an item creates the graph
        await graphs.open_graph(tx, graph_name)
        return ImportResult()
    async with graphs.write_graph(tx, graph_name, "import") as revision:
        return await import_items(tx, revision, items, strategy, is_call=True)


async def import_items(
    tx: Transaction,
    revision: Revision,
    items: Sequence[ParsedRecord],
    strategy: Strategy,
    *,
    begun: int | None = None,
    is_call: bool = False,
) -> ImportResult:
    """Write items in a revision: entities, facts, relations, then placements, in whatever order they come.

    `begun`: the first revision of this import, where it has several: names that are two forms of one name stay separate
    where the file has both, and are the same where the graph had one before.

    `is_call`: a gateway does it, so that what it would change must not be too large (TooLarge).

    Items that have expired since the export are skipped, and so are items that refer to them. The import gives way to
    calls of other tenants between its statements.
    """
    tx.is_preemptible = True
    admitted, problems = _admitted(revision.graph, items)
    begun = revision.number if begun is None else begun
    admitted = await _under_stored_names(tx, revision.graph, with_expiries(admitted), before=begun)
    expired = _by_type([item for item in admitted if is_expired(item.record, revision.at)])
    parts = _by_type([item for item in admitted if not is_expired(item.record, revision.at)])
    begun_entities = [item for item in parts[EntityRecord] if not item.continues]
    imported, unchanged = await import_entities(tx, revision, begun_entities, strategy, is_call=is_call)
    continued = [item for item in parts[EntityRecord] if item.continues]
    if continued:
        imported += await import_later_parts(tx, revision, continued, strategy, begun=begun)
    skipped = sum(not item.continues for item in expired[EntityRecord])
    imported += ImportResult(entities_skipped=skipped, facts_skipped=len(expired[FactRecord]))
    imported += await import_dismissals(tx, revision, begun_entities)
    imported += await import_facts(tx, revision, parts[FactRecord], strategy, is_call=is_call)
    imported += await import_relations(tx, revision, parts[RelationRecord], strategy)
    if parts[Placement]:
        imported += await import_placements(tx, revision, parts[Placement], strategy, unchanged=unchanged)
    return replace(imported, problems=(*problems, *imported.problems))


async def record_import(tx: Transaction, graph_name: str, format_name: str) -> None:
    """Record that the caller has imported a file into a graph that exists."""
    graph = await graphs.open_graph(tx, graph_name)
    if graph is not None:
        await audit.record(tx, Action.GRAPH_IMPORTED, named("graph", graph.id), format=format_name)


def require_sound(problems: Sequence[ImportProblem], *, field: str | None = None) -> None:
    """Raise InvalidInput if there are problems. `field` is the part of the input that holds the file, for their paths.

    The message has the first MAX_LISTED_PROBLEMS problems, and how many more there are.
    """
    if problems:
        first, *others = (
            replace(problem, where=f"{field}.{problem.where}" if field else problem.where) for problem in problems
        )
        listed = "".join(f"; {other.where}: {other.reason}" for other in others[: MAX_LISTED_PROBLEMS - 1])
        more = f" (and {len(problems) - MAX_LISTED_PROBLEMS} more)" if len(problems) > MAX_LISTED_PROBLEMS else ""
        raise InvalidInput(f"{first.reason}{listed}{more}. Nothing was imported", path=first.where)


MAX_LISTED_PROBLEMS = 20
"""Most problems that the error for a refused file lists one by one."""


async def _under_stored_names(
    tx: Transaction, graph: Graph, items: Sequence[ParsedRecord], *, before: int
) -> list[ParsedRecord]:
    """The items, in which another form of a name that the graph had before a revision is that name."""
    names = unique(name for item in items for name in names_in(item.record))
    stored = await naming.find_other_forms(tx, graph, names, before=before)
    if not stored:
        return list(items)
    return [replace(item, record=renamed(item.record, stored)) for item in items]


_TYPES = (EntityRecord, FactRecord, RelationRecord, Placement)


def _by_type(items: Sequence[ParsedRecord]) -> dict[type[AnyRecord], list[ParsedRecord]]:
    return {type_: [item for item in items if isinstance(item.record, type_)] for type_ in _TYPES}


def _admitted(graph: Graph, items: Sequence[ParsedRecord]) -> tuple[list[ParsedRecord], list[ImportProblem]]:
    """The items and observations whose kind is on the graph's whitelist; the others become problems."""
    admitted: list[ParsedRecord] = []
    problems: list[ImportProblem] = []
    for parsed in items:
        item, left_out = _without_unlisted_kinds(graph, parsed)
        problems.extend(left_out)
        try:
            match item.record:
                case EntityRecord(entity_type=kind):
                    graph.require_kind(kind or None, "entityType")
                case FactRecord(kind=kind):
                    graph.require_kind(kind or None, "kind")
            admitted.append(item)
        except InvalidInput as error:
            problems.append(ImportProblem(item.where, error.message))
    return admitted, problems


def _without_unlisted_kinds(graph: Graph, item: ParsedRecord) -> tuple[ParsedRecord, list[ImportProblem]]:
    """An item without the observations whose own kind is not on the graph's whitelist, and these as problems."""
    record = item.record
    if graph.kind_whitelist is None or not isinstance(record, EntityRecord):
        return item, []
    faults = {}
    for index, observation in enumerate(record.said):
        try:
            if observation.kind is not None:
                graph.require_kind(observation.kind, "kind")
        except InvalidInput as error:
            faults[index] = ImportProblem(f"{item.where}.observations.{index}", error.message, of_part=True)
    if not faults:
        return item, []
    valid = [index for index in range(len(record.said)) if index not in faults]
    without_faults = structs.replace(
        record,
        observations=[record.observations[index] for index in valid],
        said=[record.said[index] for index in valid],
    )
    return replace(item, record=without_faults), list(faults.values())
