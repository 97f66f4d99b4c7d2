"""Use cases of erasure: delete data about a person, or a graph, at once and for good, from history too.

Live rows are first removed as by any other write, which keeps counters and placeholders right. Then all their versions
are deleted, and the planner's statistics are renewed, since they hold samples of the values. The log keeps the ids, and
the subject that erased them.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.idempotency import service as idempotency
from recollect.caller import Check, unconditional
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.fairness.computing import Slices, compute_while_locked, sized_batches
from recollect.graph.derivations import service as derivations
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import EntityNotFound, NodeHead, Rewrite
from recollect.graph.observations import service as observations
from recollect.graph.passage_words import service as passage_words
from recollect.graph.passages import service as passages
from recollect.graph.relations import service as relations
from recollect.graph.relations.model import MENTIONS_ENTITY
from recollect.jobs import service as jobs
from recollect.jobs.kinds import FORGET_STATISTICS
from recollect.jobs.model import NewJob
from recollect.postgres.transactions import Transaction
from recollect.retention.erasure import store
from recollect.retention.erasure.model import (
    ERASE_PERSON,
    MAX_LINKED_NAMES,
    MAX_NAMES,
    ErasedItem,
    ErasureTargets,
    Receipt,
    redacted,
    require_searchable,
    texts_to_search,
    too_many_names,
)
from recollect.retention.erasure.name_patterns import patterns_of, whole_patterns_of

LONGEST_STATEMENT = timedelta(minutes=10)
"""How long a statement of an erasure may run. The erasure is one transaction, so that no reader sees half of it; with
much to erase, a statement takes longer than the statements of other calls may."""

LONGEST_TRIAL = timedelta(minutes=2)
"""How long a statement of a dry run may run: anybody may try again, and it takes time of PostgreSQL from others."""

IDS_PER_STATEMENT = 5_000
"""Most ids that a statement of another package gets. With fewer, more statements scan the whole tenant if there are no
statistics; with more, a statement may compare each id with all rows if there are (both measured)."""


async def erase_person(
    tx: Transaction, graph_name: str, name: str | None, *, created_by: str | None = None, dry_run: bool = False
) -> Receipt:
    """Erase an entity, by any form of any of its names, with everything that mentions it; and everything that a subject
    wrote.

    Deleted are: the entity with its history; deleted entities that had one of its names; facts that are related to it
    or name it; observations and relations of others that name it; and texts, tags and metadata of others that name it,
    in every version. Input, output and errors of the graph's jobs are deleted completely. All of it is one revision.
    With `dry_run` the caller rolls the transaction back. Raises NotFound for an unknown graph, name or subject,
    InvalidInput if neither name nor subject is given, TooLarge for a person with too many names, Forbidden.
    """
    if name is None and created_by is None:
        raise InvalidInput("Give a name, a created_by, or both", path="name")
    await graphs.get_graph(tx, graph_name)
    await store.allow_long_statements(tx, LONGEST_TRIAL if dry_run else LONGEST_STATEMENT)
    async with graphs.write_graph(tx, graph_name, ERASE_PERSON) as revision:
        targets = await _targets(tx, revision.graph, name, created_by)
        cleared = await _remove_live(tx, revision, targets)
        erased = await _delete(tx, revision, targets)
        remaining = await store.count_remaining(tx, revision.graph, targets)
        erased |= {"cleared_entities": cleared, "jobs": await jobs.erase(tx, revision.graph.id)}
        revision.touch("nodes_erased", targets.node_ids)
        revision.touch("observations_erased", [observation.id for observation in targets.observations])
        revision.touch("relations_erased", [relation.id for relation in targets.relations])
    number = None if revision.is_empty else revision.number
    left_out = () if dry_run else await _end_with_statistics(tx, revision.graph.id)
    await idempotency.forget_answers(tx)
    await audit.record(tx, Action.PERSON_ERASED, named("graph", revision.graph.id), erased=_without_zeros(erased))
    return Receipt(
        number, targets.names, erased, {table: count for table, count in remaining.items() if count}, left_out
    )


async def erase_graph(
    tx: Transaction, graph_name: str, *, dry_run: bool = False, check: Check[Graph] = unconditional
) -> Receipt:
    """Erase a graph with its history, its log and its jobs. Its name is free afterwards.

    Raises NotFound, Forbidden for a caller with an allow-list, Conflict if it is the default graph of a valid key, and
    as `check` does.
    """
    graph = await graphs.get_graph(tx, graph_name)
    await store.allow_long_statements(tx, LONGEST_STATEMENT)
    counts = await store.count_of_graph(tx, graph.id)
    if dry_run:
        check(graph)
        return Receipt(None, (), counts)
    await graphs.delete_graph(tx, graph_name, "erase_graph", check=check)
    remaining = await store.count_of_graph(tx, graph.id)
    left_out = await _end_with_statistics(tx, None)
    await idempotency.forget_answers(tx)
    await audit.record(tx, Action.GRAPH_ERASED, named("graph", graph.id), erased=_without_zeros(counts))
    return Receipt(None, (), counts, {table: count for table, count in remaining.items() if count}, left_out)


async def forget_statistics(tx: Transaction, only: Sequence[str] | None = None) -> tuple[str, ...]:
    """Renew the planner's statistics of all tables with texts of users, or of `only` these; return the skipped ones.

    It does not wait: a table that is being analysed or vacuumed is skipped.
    """
    return tuple(await store.forget_statistics(tx, only))


async def _end_with_statistics(tx: Transaction, graph_id: UUID | None) -> tuple[str, ...]:
    """Renew the statistics at the end of an erasure; skipped tables get a job, if the tenant may have one more."""
    left_out = await forget_statistics(tx)
    if left_out:
        with suppress(Conflict):
            await jobs.schedule(
                tx, NewJob(FORGET_STATISTICS, graph_id, {"tables": list(left_out)}, total=len(left_out))
            )
    return left_out


async def _targets(tx: Transaction, graph: Graph, name: str | None, created_by: str | None) -> ErasureTargets:
    lineages, names = await _person(tx, graph, name) if name is not None else ([], [])
    patterns = await compute_while_locked(tx.tenant_id, patterns_of(names))
    whole = await compute_while_locked(tx.tenant_id, whole_patterns_of(names))
    targets = ErasureTargets(tuple(names), patterns, whole, created_by, tuple(lineages))
    further = await store.lineages_about(tx, graph, targets, relation=MENTIONS_ENTITY)
    targets = replace(targets, lineages=(*targets.lineages, *further))
    targets = replace(targets, lineages=(*targets.lineages, *await _derived(tx, targets)))
    targets = replace(
        targets,
        observations=tuple(await store.observations_about(tx, graph, targets)),
        relations=tuple(await store.relations_about(tx, graph, targets)),
    )
    if not (targets.lineages or targets.observations or targets.relations):
        await _require_versions(tx, graph, targets)
    return targets


async def _derived(tx: Transaction, targets: ErasureTargets) -> list[ErasedItem]:
    """Further facts that were derived from any of the targets: they may say what it said, by other words."""
    known, found = set(targets.node_ids), dict[UUID, bool]()
    for ids in _pages(targets.node_ids):
        found |= await derivations.resting_on(tx, ids)
    return [ErasedItem(fact_id, lives) for fact_id, lives in found.items() if fact_id not in known]


async def _require_versions(tx: Transaction, graph: Graph, targets: ErasureTargets) -> None:
    """Raise NotFound for an unknown subject: a typing error must not erase the graph's jobs."""
    if not (await store.count_remaining(tx, graph, targets))["versions_by_subject"]:
        raise NotFound("Nobody with that subject made anything in this graph", path="created_by")


async def _person(tx: Transaction, graph: Graph, name: str) -> tuple[list[ErasedItem], list[str]]:
    """All lineages that are the person, or were before merges and deletions, and all their names."""
    wanted = whole = await compute_while_locked(tx.tenant_id, whole_patterns_of([name]))
    names, found = {name}, dict[UUID, ErasedItem]()
    for _ in range(MAX_LINKED_NAMES):
        lineages = await store.lineages_named(tx, graph, wanted=wanted, whole=whole)
        further = [lineage for lineage in lineages if lineage.id not in found]
        found |= {lineage.id: lineage for lineage in further}
        new_names = {*await store.names_of(tx, [lineage.id for lineage in further], limit=MAX_NAMES + 1)} - names
        names |= new_names
        require_searchable(names)
        if not new_names:
            break
        wanted, whole = (), await compute_while_locked(tx.tenant_id, whole_patterns_of(sorted(new_names)))
    else:
        raise too_many_names(f"{MAX_LINKED_NAMES} names, each of which led to deleted entities with further names")
    if not found:
        raise EntityNotFound(name)
    return list(found.values()), sorted(names)


async def _remove_live(tx: Transaction, revision: Revision, targets: ErasureTargets) -> int:
    """Remove the live targets as any other write does; return how many other entities were redacted."""
    ends = set[UUID]()
    for page in _pages([relation.id for relation in targets.relations if relation.lives]):
        ends |= await relations.remove_edges(tx, revision, page)
    for page in _pages([observation.id for observation in targets.observations if observation.lives]):
        await observations.remove_observations_by_id(tx, revision, page)
    for page in _pages([lineage.id for lineage in targets.lineages if lineage.lives]):
        await relations.delete_nodes(tx, revision, page)
    await relations.drop_orphaned_placeholders(tx, revision, ends - set(targets.node_ids))
    return await _redact_others(tx, revision, targets)


async def _redact_others(tx: Transaction, revision: Revision, targets: ErasureTargets) -> int:
    """Take the names out of other live entities, a page of bounded size at a time; return how many were changed."""
    changed = 0
    named_heads = await store.heads_about(tx, revision.graph, targets)
    pages = sized_batches(named_heads, lambda head: head.bytes, max_items=nodes.PAGE_NODES, max_size=nodes.PAGE_BYTES)
    for page in pages:
        heads = await nodes.read_heads(tx, revision.graph, [head.id for head in page], expired_too=True)
        texts = await compute_while_locked(tx.tenant_id, _texts_of(heads.values()))
        named = frozenset(await store.texts_named(tx, texts, targets))
        rewrites = await compute_while_locked(tx.tenant_id, _rewrites(heads.values(), named))
        await nodes.rewrite(tx, revision, rewrites)
        changed += len(rewrites)
    return changed


def _texts_of(heads: Iterable[NodeHead]) -> Slices[list[str]]:
    """Each text of these heads that may name a person, once."""
    texts = set[str]()
    for head in heads:
        yield
        texts.update(texts_to_search(head.fields))
    return list(texts)


def _rewrites(heads: Iterable[NodeHead], named: frozenset[str]) -> Slices[list[Rewrite]]:
    """The heads that hold one of the named texts, without them."""
    rewrites = list[Rewrite]()
    for head in heads:
        yield
        fields = redacted(head.fields, named)
        if not fields.is_same_as(head.fields):
            rewrites.append(Rewrite(head, fields))
    return rewrites


def _without_zeros(erased: Mapping[str, int]) -> dict[str, int]:
    """The rows that were erased, by table; tables that lost none are left out."""
    return {table: count for table, count in erased.items() if count}


def _pages(ids: Sequence[UUID]) -> list[Sequence[UUID]]:
    return [ids[at : at + IDS_PER_STATEMENT] for at in range(0, len(ids), IDS_PER_STATEMENT)]


async def _delete(tx: Transaction, revision: Revision, targets: ErasureTargets) -> dict[str, int]:
    """Delete every row of the targets, and their passages and vectors; return how many rows of each table."""
    graph = revision.graph
    await passage_words.lock_term_counts(tx, graph.id)
    await passages.raise_index_epoch(tx, graph.id)  # The worker waits for it; cached searches are no longer found.
    await tx.check_foreign_keys_at_once()
    passage_count, vectors, sequences = await store.erase_passages(tx, graph, targets)
    await store.clear_windows(tx, graph, sequences)
    erased = await store.erase_rows(tx, graph, targets)
    await passage_words.recount_graph(tx, graph.id)
    return {**erased, "passages": passage_count, "vectors": vectors}
