"""Use cases of lineages: write a version, read any version, see conflicts, settle them.

Conflicts: under `lww` the newest put wins, and the version that it supersedes stays in history. Under `manual` a put
that is not based on the newest version is written beside it, as a sibling head; a put based on the newest, or on none,
supersedes all heads. A put that would repeat a head, as when its call is sent again, writes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from recollect.errors import ErrorCode, NotFound, RecollectError
from recollect.fairness.computing import collect_yielding
from recollect.graph.graphs.model import Graph, Revision
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import store
from recollect.graph.lineages.model import (
    Draft,
    PutOutcome,
    SchemaDescription,
    TagUse,
    Version,
    VersionFilter,
    needless,
    not_found,
    plan_puts,
)
from recollect.graph.nodes import naming
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeHead, NodeRef, Rewrite, occurrences
from recollect.graph.observations import service as observations
from recollect.postgres.transactions import Transaction

MAX_WORDS = 100
"""Kinds of a graph, and as many tags and prefixes of tags, that a description lists, at most."""

MAX_EXAMPLES = 3
MAX_VALUES = 10


async def put_nodes(tx: Transaction, revision: Revision, drafts: Sequence[Draft]) -> list[PutOutcome | RecollectError]:
    """Write versions, best effort: for each draft, in order, its outcome or its error.

    A version that would repeat a head of its lineage is not written. A lineage that is named twice gets two versions.
    NotFound for a lineage that does not exist or is deleted, InvalidInput for a version that it never had or a kind
    that is not allowed, Conflict for a name that is taken.
    """
    outcomes: dict[int, PutOutcome | RecollectError] = {}
    for indexes in occurrences(lambda index: drafts[index].node_id or index, range(len(drafts))):
        outcomes |= zip(indexes, await _put_nodes(tx, revision, [drafts[index] for index in indexes]), strict=True)
    return [outcomes[index] for index in range(len(drafts))]


async def _put_nodes(tx: Transaction, revision: Revision, drafts: Sequence[Draft]) -> list[PutOutcome | RecollectError]:
    """`put_nodes` for drafts of distinct lineages."""
    heads = await nodes.read_heads(tx, revision.graph, [draft.node_id for draft in drafts if draft.node_id])
    names = await naming.find_named(
        GraphView(tx, revision.graph), [draft.fields.name for draft in drafts if draft.fields.name]
    )
    # A placeholder becomes a new node of its name; an existing node, which has relations of its own, cannot replace it.
    renamed = {draft.fields.name for draft in drafts if draft.node_id and not draft.content_only}
    owners = {name: node.id for name, node in names.items() if not node.placeholder or name in renamed}
    planned = plan_puts(revision.graph, drafts, heads, owners)
    steps = await _without_needless(tx, revision.graph, planned)
    creations = [step for step in steps if isinstance(step, Draft)]
    rewrites = [step for step in steps if isinstance(step, Rewrite)]
    fields, actors = [draft.fields for draft in creations], [draft.actor for draft in creations]
    created = iter(await nodes.create_nodes(tx, revision, fields, actors=actors))
    brought_back = [
        step.head
        for draft, step in zip(drafts, steps, strict=True)
        if draft.content_only and isinstance(step, Rewrite) and step.head.is_hidden
    ]
    await observations.outdate_former(tx, revision, brought_back)
    await nodes.rewrite(tx, revision, rewrites)
    return [_outcome(step, created, names) for step in steps]


async def put_node(tx: Transaction, revision: Revision, draft: Draft) -> PutOutcome:
    """Write one version; raises the error that `put_nodes` would return."""
    (outcome,) = await put_nodes(tx, revision, [draft])
    if isinstance(outcome, RecollectError):
        raise outcome
    return outcome


async def require_head(tx: Transaction, graph: Graph, node_id: UUID) -> NodeHead:
    """A live node as it is now; raises NotFound, also for a placeholder."""
    head = (await nodes.read_heads(tx, graph, [node_id])).get(node_id)
    if head is None or head.fields.placeholder:
        raise not_found(node_id)
    return head


async def get_node(view: GraphView, node_id: UUID) -> Version:
    """The newest version of a live node; raises NotFound."""
    found = await get_nodes(view, [node_id])
    return _require_version(found[0] if found else None, node_id)


async def get_nodes(view: GraphView, node_ids: Sequence[UUID], *, placeholders: bool = False) -> list[Version]:
    """The newest versions of live nodes, in the order of `node_ids`; unknown ids are left out.

    `placeholders`: placeholders too, as for paths that lead over them.
    """
    if view.at is not None:
        found = await store.past_versions(view, node_ids, placeholders=placeholders)
        return await _with_conflicts_of(view, found)
    return await store.current_versions(view.tx, [view.graph.id], node_ids, placeholders=placeholders)


async def get_heads(view: GraphView, version_ids: Sequence[UUID]) -> list[Version]:
    """Heads in the order of `version_ids`."""
    found = await store.find_versions(view.tx, view.graph, version_ids)
    return found if view.at is None else await _with_conflicts_of(view, found)


async def get_found(
    view: GraphView, found: Sequence[tuple[UUID, UUID | None]]
) -> dict[tuple[UUID, UUID | None], Version]:
    """The versions of search results, in order: by node id and version id of a sibling head (None: the newest)."""
    newest = await get_nodes(view, [node_id for node_id, sibling in found if sibling is None])
    siblings = await get_heads(view, [sibling for _, sibling in found if sibling is not None])
    versions = {(node.node_id, None): node for node in newest} | {(node.node_id, node.id): node for node in siblings}
    return {key: versions[key] for key in found if key in versions}


async def get_past_version(view: GraphView, node_id: UUID) -> Version:
    """The version that was a node's head at the moment of the view, as stored; raises NotFound."""
    found = await store.past_versions(view, [node_id])
    return _require_version(found[0] if found else None, node_id)


async def get_nodes_across(tx: Transaction, graph_ids: Sequence[UUID], node_ids: Sequence[UUID]) -> list[Version]:
    """The newest versions of live nodes of several graphs, in the order of `node_ids`; unknown ids are left out."""
    return await store.current_versions(tx, graph_ids, node_ids)


async def get_version(tx: Transaction, graph: Graph, version_id: UUID) -> Version:
    """One version by its own id, exactly as written; raises NotFound."""
    found = await store.find_versions(tx, graph, [version_id])
    return _require_version(found[0] if found else None, version_id)


async def get_versions(tx: Transaction, graph: Graph, version_ids: Sequence[UUID]) -> list[Version]:
    """Versions exactly as written, in the order of `version_ids`; unknown ids are left out."""
    return await store.find_versions(tx, graph, version_ids)


async def get_numbered(tx: Transaction, graph: Graph, node_id: UUID, number: int) -> Version:
    """One version of a node, also of a deleted one, by its number; raises NotFound, which names the newest number."""
    version = await store.find_numbered(tx, graph, node_id, number)
    if version is None:
        newest = (await history(tx, graph, node_id, limit=1))[:1]
        raise NotFound(
            f"Node {node_id} has no version {number}{f'; its newest is {newest[0].version}' if newest else ''}.",
            code=ErrorCode.NODE_NOT_FOUND,
            path="at_version",
        )
    return _require_version(version, node_id)


async def history(
    tx: Transaction, graph: Graph, node_id: UUID, *, before: int | None = None, offset: int = 0, limit: int = 100
) -> list[Version]:
    """Versions of a node, also of a deleted one, newest first; raises NotFound.

    `before`: only versions with a lower number.
    """
    found = await store.list_versions(tx, graph, node_id, before=before, offset=offset, limit=limit)
    if not found and not await store.lineage_exists(tx, graph, node_id):
        raise not_found(node_id)
    return found


async def list_nodes(view: GraphView, filters: VersionFilter) -> tuple[list[Version], bool]:
    """Heads of live nodes that pass a filter, oldest node first, and whether more follow.

    A node in conflict is listed with every head, the newest first.
    """
    ids = await store.list_heads(view, filters)
    return await get_heads(view, ids[: filters.limit]), len(ids) > filters.limit


async def describe_schema(view: GraphView) -> SchemaDescription:
    """The kinds and tags that a graph uses, so that callers can reuse them instead of inventing synonyms."""
    count, kinds = await store.describe_kinds(view, examples=MAX_EXAMPLES, limit=MAX_WORDS + 1)
    prefixes = await store.count_tag_prefixes(view, values=MAX_VALUES, limit=MAX_WORDS + 1)
    tags = await store.count_tags(view, prefix="", limit=MAX_WORDS + 1)
    more = max(len(kinds), len(prefixes), len(tags)) > MAX_WORDS
    return SchemaDescription(
        count, tuple(kinds[:MAX_WORDS]), tuple(prefixes[:MAX_WORDS]), tuple(tags[:MAX_WORDS]), more
    )


async def list_tags(
    view: GraphView, prefix: str = "", *, offset: int = 0, limit: int = MAX_WORDS
) -> tuple[list[TagUse], bool]:
    """A page of the tags with a prefix, in any case, most used first, and whether there are more."""
    found = await store.count_tags(view, prefix=prefix, offset=offset, limit=limit + 1)
    return found[:limit], len(found) > limit


async def _without_needless(
    tx: Transaction, graph: Graph, steps: Sequence[Draft | Rewrite | RecollectError]
) -> list[Draft | Rewrite | PutOutcome | RecollectError]:
    """The steps; each that would repeat a head is replaced by its outcome."""
    rewrites = [step for step in steps if isinstance(step, Rewrite)]
    changed = {step.head.id for step in await nodes.differing(rewrites)}
    candidates = [step.head.id for step in rewrites if step.sibling_heads or step.head.id not in changed]
    if not candidates:
        return list(steps)
    newest = await store.current_versions(tx, [graph.id], candidates)
    siblings = await store.find_versions(tx, graph, [sibling for version in newest for sibling in version.conflicts])
    heads: dict[UUID, list[Version]] = {}
    for version in [*newest, *siblings]:
        heads.setdefault(version.node_id, []).append(version)

    def outcome(step: Draft | Rewrite | RecollectError) -> Draft | Rewrite | PutOutcome | RecollectError:
        is_needless = isinstance(step, Rewrite) and needless(step, heads.get(step.head.id, ()))
        return _unchanged(step, heads[step.head.id]) if isinstance(step, Rewrite) and is_needless else step

    return await collect_yielding(map(outcome, steps))


def _unchanged(step: Rewrite, heads: Sequence[Version]) -> PutOutcome:
    return PutOutcome(step.head.id, step.head.version, created=False, conflict=len(heads) > 1, unchanged=True)


async def _with_conflicts_of(view: GraphView, versions: list[Version]) -> list[Version]:
    heads = await store.past_conflicts(view, [version.node_id for version in versions])
    return [replace(v, conflicts=tuple(i for i in heads.get(v.node_id, ()) if i != v.id)) for v in versions]


def _outcome(
    step: Draft | Rewrite | PutOutcome | RecollectError, created: Iterator[UUID], names: Mapping[str, NodeRef]
) -> PutOutcome | RecollectError:
    match step:
        case RecollectError() | PutOutcome():
            return step
        case Draft():
            return PutOutcome(next(created), 2 if step.fields.name in names else 1, created=True, conflict=False)
        case Rewrite():
            return PutOutcome(step.head.id, step.head.version + 1, created=False, conflict=step.sibling_heads)


def _require_version(version: Version | None, node_id: UUID) -> Version:
    if version is None or version.placeholder:
        raise not_found(node_id)
    return version
