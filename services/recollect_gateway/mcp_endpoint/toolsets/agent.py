"""Toolset `agent`: verbs made for models. Small schemas, compact replies."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from recollect.errors import InvalidInput
from recollect.memory import service as memory
from recollect.memory.model import Amendment, Explored, Item, Neighbour, Remembered, Target
from recollect.relations import service as relations
from recollect.relations.model import Direction, NewRelation, Walk
from recollect.search import service as search
from recollect.search.model import Hit, Recalled, RecallFilter
from recollect_gateway.mcp_endpoint.schema import utc
from recollect_gateway.mcp_endpoint.tool import Arguments, Call, Reading, Reply
from recollect_gateway.mcp_endpoint.toolsets.memory import Importance, Kind, Name, RelationType, Tag

MAX_ITEMS = 100
MAX_QUERIES = 8
MAX_GIST = 300
"""Characters of what is told of a node that was met on the way."""

Time = Annotated[datetime, Meta(tz=True)]
Reason = Annotated[str, Meta(max_length=1_000)]
Query = Annotated[str, Meta(min_length=1, max_length=1_000)]


class RememberItem(Struct, forbid_unknown_fields=True, frozen=True):
    """One thing to remember."""

    text: Annotated[str, Meta(min_length=1, max_length=10_000, description="One fact, in a sentence that stands alone")]
    about: Annotated[list[Name], Meta(max_length=20, description="Names of the entities it is about; made if new")] = []
    thread: Annotated[str, Meta(max_length=256, description="Conversation or document it came from")] | None = None
    at: Annotated[Time, Meta(description="When it was said; default now")] | None = None
    kind: Kind | None = None
    tags: Annotated[list[Tag], Meta(max_length=50)] = []
    importance: Importance | None = None
    ttl_days: Annotated[float, Meta(gt=0, le=3650, description="Forget it after so many days")] | None = None
    source: Annotated[str, Meta(max_length=256)] | None = None
    name: Annotated[Name, Meta(description="Shorthand for about=[name]")] | None = None
    metadata: dict[str, Any] = {}


class Remember(Arguments, frozen=True, rename=None):
    """Arguments of `remember`."""

    items: Annotated[list[RememberItem], Meta(min_length=1, max_length=MAX_ITEMS)]


class Recall(Arguments, frozen=True, rename=None):
    """Arguments of `recall`."""

    query: Annotated[Query, Meta(description="A question or a few words")] | None = None
    queries: Annotated[list[Query], Meta(max_length=MAX_QUERIES, description="Several phrasings, answered as one")] = []
    limit: Annotated[int, Meta(ge=1, le=100)] = 10
    token_budget: Annotated[int, Meta(ge=50, le=50_000, description="Tokens of memories at most")] = 1500
    kinds: Annotated[list[Kind], Meta(max_length=50)] = []
    tags: Annotated[list[Tag], Meta(max_length=50)] = []
    about: Annotated[list[Name], Meta(max_length=50, description="Only memories about these entities")] = []
    min_importance: Importance | None = None
    since: Time | None = None
    until: Time | None = None
    fresh_only: bool = False
    include_outdated: bool = False
    explain: Annotated[bool, Meta(description="Give each term of the scores")] = False


class Triple(Struct, forbid_unknown_fields=True, frozen=True):
    """Subject, predicate and object, by name."""

    subject: Name
    predicate: RelationType
    object: Name
    metadata: dict[str, Any] = {}


class Relate(Arguments, frozen=True, rename=None):
    """Arguments of `relate`."""

    triples: Annotated[list[Triple], Meta(min_length=1, max_length=MAX_ITEMS)]


class Revise(Arguments, frozen=True, rename=None):
    """Arguments of `revise`."""

    id: Annotated[UUID, Meta(description="A memory's or node's id")] | None = None
    name: Annotated[Name, Meta(description="Or an entity's name")] | None = None
    text: Annotated[str, Meta(min_length=1, max_length=10_000)] | None = None
    tags: Annotated[list[Tag], Meta(max_length=50)] | None = None
    importance: Importance | None = None
    status: Literal["active", "outdated", "archived"] | None = None
    reason: Reason | None = None
    based_on_version: Annotated[int, Meta(ge=1)] | None = None


class Forget(Arguments, frozen=True, rename=None):
    """Arguments of `forget`."""

    ids: Annotated[list[UUID], Meta(max_length=MAX_ITEMS)] = []
    names: Annotated[list[Name], Meta(max_length=MAX_ITEMS)] = []
    reason: Reason | None = None
    mode: Literal["outdated", "delete"] = "outdated"


class Explore(Reading, frozen=True, rename=None):
    """Arguments of `explore`."""

    start: Annotated[str, Meta(min_length=1, max_length=512, description="Id or name")]
    to: Annotated[str, Meta(min_length=1, max_length=512, description="Paths to this id or name instead")] | None = None
    depth: Annotated[int, Meta(ge=1, le=6)] = 1
    direction: Literal["outgoing", "incoming", "both"] = "both"
    predicates: Annotated[list[RelationType], Meta(max_length=50)] = []
    max_nodes: Annotated[int, Meta(ge=1, le=200)] = 30


class CloseMemory(Struct, frozen=True):
    """An older memory that says nearly the same."""

    id: str
    text: str
    score: float


class RememberedMemory(Struct, frozen=True):
    """What became of one item."""

    id: str
    node: str
    status: str
    close: list[CloseMemory]


class RememberedMemories(Struct, frozen=True):
    """Result of `remember`, one entry an item, in order."""

    memories: list[RememberedMemory]


class RecalledMemory(Struct, frozen=True, omit_defaults=True):
    """One memory that was found. `why`: the unscaled terms of its score, where asked for."""

    id: str
    node: str
    text: str
    score: float
    name: str | None = None
    at: datetime | None = None
    why: dict[str, float] | None = None


class RecalledMemories(Struct, frozen=True):
    """Result of `recall`. `waiting`: memories that are found by their words only, for they are not embedded yet."""

    memories: list[RecalledMemory]
    more: bool
    waiting: int


class RelatedTriple(Struct, frozen=True):
    """What became of one triple."""

    subject: str
    predicate: str
    object: str
    status: str


class RelatedTriples(Struct, frozen=True):
    """Result of `relate`, one entry a triple, in order."""

    relations: list[RelatedTriple]


class RevisedMemory(Struct, frozen=True, omit_defaults=True):
    """Result of `revise`. `conflict`: the texts of other versions that stand beside this one, unsettled."""

    id: str
    node: str
    status: str
    text: str | None = None
    version: int | None = None
    conflict: list[str] = []


class ForgottenMemories(Struct, frozen=True):
    """Result of `forget`: what was there and is let go."""

    forgotten: list[str]


class ExploredNode(Struct, frozen=True, omit_defaults=True):
    """A node, and what is known of it, shortened."""

    id: str
    name: str | None = None
    kind: str | None = None
    text: str | None = None


class ExploredEdge(Struct, frozen=True):
    """A relation between two of the nodes, which it names by name or id."""

    subject: str
    predicate: str
    object: str


class ExploredGraph(Struct, frozen=True):
    """Result of `explore`. `paths` name the nodes from start to end; `cut` says what bound ended the search early."""

    nodes: list[ExploredNode]
    relations: list[ExploredEdge]
    paths: list[list[str]]
    cut: str


async def relate(call: Call, arguments: Relate) -> Reply:
    """Keep relations; answer which were new."""
    for place, triple in enumerate(arguments.triples):
        _check_metadata(triple.metadata, f"triples.{place}.metadata", call.settings.max_metadata_size)
    wanted = [NewRelation(t.subject, t.object, t.predicate, t.metadata) for t in arguments.triples]
    async with call.writing(arguments.graph) as (tx, revision):
        made = {relation.triple for relation in await relations.create_relations(tx, revision, wanted)}
    answer = [RelatedTriple(r.source, r.type, r.target, "new" if r.triple in made else "known") for r in wanted]
    lines = "\n".join(f"{one.status} {one.subject} -{one.predicate}-> {one.object}" for one in answer)
    return Reply(RelatedTriples(answer), lines)


async def revise(call: Call, arguments: Revise) -> Reply:
    """Change one memory or node; a conflict answers with both texts."""
    if (arguments.id is None) == (arguments.name is None):
        raise InvalidInput("Give id or name, one of them", path="id")
    amendment = Amendment(
        text=arguments.text,
        tags=None if arguments.tags is None else tuple(arguments.tags),
        importance=arguments.importance,
        status=arguments.status,
        reason=arguments.reason,
        based_on=arguments.based_on_version,
    )
    async with call.writing(arguments.graph) as (tx, revision):
        revised = await memory.revise(tx, revision, Target(arguments.id, arguments.name), amendment)
    status = "conflict" if revised.conflict else "revised"
    answer = RevisedMemory(
        str(revised.id), str(revised.node_id), status, revised.text, revised.version, list(revised.conflict)
    )
    other = "".join(f"\n  beside: {text}" for text in revised.conflict)
    return Reply(answer, f"{status} {revised.id}: {revised.text or ''}{other}")


async def forget(call: Call, arguments: Forget) -> Reply:
    """Let memories or nodes go."""
    if not arguments.ids and not arguments.names:
        raise InvalidInput("Give ids or names", path="ids")
    targets = [*(Target(id=i) for i in arguments.ids), *(Target(name=name) for name in arguments.names)]
    async with call.writing(arguments.graph) as (tx, revision):
        gone = await memory.forget(tx, revision, targets, reason=arguments.reason, delete=arguments.mode == "delete")
    return Reply(ForgottenMemories([str(i) for i in gone]), f"forgotten: {len(gone)} of {len(targets)}")


async def explore(call: Call, arguments: Explore) -> Reply:
    """Show what lies around a node, or the paths to another."""
    async with call.transaction() as tx:
        found = await memory.explore(
            tx,
            arguments.graph,
            _target(arguments.start),
            Walk(Direction(arguments.direction), tuple(arguments.predicates)),
            to=None if arguments.to is None else _target(arguments.to),
            depth=arguments.depth,
            max_nodes=arguments.max_nodes,
            as_of=arguments.as_of,
        )
    answer = _explored(found)
    return Reply(answer, _explored_text(answer))


async def remember(call: Call, arguments: Remember) -> Reply:
    """Keep memories; answer what became of each, and what is close to it."""
    items = [_item(item, place, call.settings.max_metadata_size) for place, item in enumerate(arguments.items)]
    questions = await call.questions([item.text for item in items])
    async with call.writing(arguments.graph) as (tx, revision):
        remembered = await memory.remember(tx, revision, items, questions)
    return Reply(RememberedMemories([_remembered(one) for one in remembered]), _remembered_text(remembered))


async def recall(call: Call, arguments: Recall) -> Reply:
    """Find memories by words and meaning."""
    asked = [*([arguments.query] if arguments.query else []), *arguments.queries]
    if not 1 <= len(asked) <= MAX_QUERIES:
        raise InvalidInput(f"Give query, or queries with 1 to {MAX_QUERIES} entries", path="query")
    questions = await call.questions(asked)
    async with call.transaction() as tx:
        recalled = await search.recall(
            tx,
            arguments.graph,
            questions,
            _filter(arguments),
            limit=arguments.limit,
            token_budget=arguments.token_budget,
        )
    found = [_recalled(hit, arguments.explain) for hit in recalled.hits]
    return Reply(RecalledMemories(found, recalled.more, recalled.waiting), _recalled_text(recalled))


def _target(text: str) -> Target:
    """An id where the text is one, else a name."""
    try:
        return Target(id=UUID(text))
    except ValueError:
        return Target(name=text)


def _explored(found: Explored) -> ExploredGraph:
    names = {node.id: node.name or str(node.id) for node in found.nodes} | found.labels
    return ExploredGraph(
        [ExploredNode(str(node.id), node.name, node.kind, _gist(node)) for node in found.nodes],
        [
            ExploredEdge(names[edge.from_node], edge.type, names[edge.to_node])
            for edge in found.edges
            if edge.from_node in names and edge.to_node in names
        ],
        [[names[node] for node in path] for path in found.paths if all(node in names for node in path)],
        found.cut or "",
    )


def _gist(node: Neighbour) -> str | None:
    text = "; ".join([*([node.content] if node.content else []), *node.observations])
    return (text if len(text) <= MAX_GIST else f"{text[: MAX_GIST - 1]}…") or None


def _explored_text(found: ExploredGraph) -> str:
    lines = [" → ".join(path) for path in found.paths]
    lines += [f"{edge.subject} -{edge.predicate}-> {edge.object}" for edge in found.relations]
    lines += [
        f"- {node.name or node.id}{f' ({node.kind})' if node.kind else ''}: {node.text or ''}" for node in found.nodes
    ]
    if found.cut:
        lines.append(f"Not everything: the bound on {found.cut} was reached. Narrow predicates or depth.")
    return "\n".join(lines) or "Nothing found."


def _check_metadata(metadata: dict[str, Any], path: str, max_size: int) -> None:
    if len(msgspec.json.encode(metadata)) > max_size:
        raise InvalidInput(f"Metadata too large (max {max_size} bytes)", path=path)


def _item(item: RememberItem, place: int, max_metadata_size: int) -> Item:
    _check_metadata(item.metadata, f"items.{place}.metadata", max_metadata_size)
    names = [*([item.name] if item.name else []), *item.about]
    return Item(
        item.text,
        about=tuple(dict.fromkeys(names)),
        thread=item.thread,
        at=utc(item.at, f"items.{place}.at"),
        kind=item.kind,
        tags=tuple(item.tags),
        importance=item.importance,
        ttl_days=item.ttl_days,
        source=item.source,
        metadata=item.metadata,
    )


def _filter(arguments: Recall) -> RecallFilter:
    return RecallFilter(
        kinds=tuple(arguments.kinds),
        tags=tuple(arguments.tags),
        about=tuple(arguments.about),
        min_importance=arguments.min_importance,
        since=utc(arguments.since, "since"),
        until=utc(arguments.until, "until"),
        fresh_only=arguments.fresh_only,
        include_outdated=arguments.include_outdated,
    )


def _remembered(one: Remembered) -> RememberedMemory:
    close = [CloseMemory(str(older.memory_id), older.text, round(older.score, 3)) for older in one.close]
    return RememberedMemory(str(one.id), str(one.node_id), "known" if one.known else "new", close)


def _remembered_text(remembered: list[Remembered]) -> str:
    lines = []
    for one in remembered:
        lines.append(f"{'known' if one.known else 'new'} {one.id}")
        lines.extend(f"  close ({older.score:.2f}) {older.memory_id}: {older.text}" for older in one.close)
    return "\n".join(lines)


def _recalled(hit: Hit, explain: bool) -> RecalledMemory:
    why = {"words": round(hit.words, 4), "meaning": round(hit.meaning, 4)} if explain else None
    return RecalledMemory(
        str(hit.memory_id), str(hit.node_id), hit.text, round(hit.score, 4), name=hit.name, at=hit.at, why=why
    )


def _recalled_text(recalled: Recalled) -> str:
    lines = [_line(hit) for hit in recalled.hits] or ["Nothing found."]
    if recalled.more:
        lines.append("More was found: raise limit or token_budget, or narrow the question.")
    if recalled.waiting:
        lines.append(f"{recalled.waiting} memories are not embedded yet: found by their words only.")
    return "\n".join(lines)


def _line(hit: Hit) -> str:
    about = f"{hit.name}: " if hit.name and hit.name != hit.text else ""
    when = f" ({hit.at:%Y-%m-%d})" if hit.at else ""
    return f"- {about}{hit.text}{when} [{hit.memory_id}]"
