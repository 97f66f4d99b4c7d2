"""Undo an author's changes: the choice of changes, a preview, and the result."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import QueryParameter
from litestar.response import Redirect

from recollect.caller import Scope
from recollect.curation.undo import service as undoing
from recollect.curation.undo.model import ChangeRange, Reason, UndoPlan
from recollect.errors import InvalidInput, TooLarge
from recollect.graph.graphs import history, moments
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import naming
from recollect.graph.observations import service as observations
from recollect_console.access import SCOPE
from recollect_console.authors import authors_of
from recollect_console.rendering import render
from recollect_console.visit import Visit

OPERATION = "undo_changes"
WRITES: dict[str, Any] = {SCOPE: Scope.MEMORY_WRITE}
"""The `opt` of the page: who may not take anything back is not shown what it would do."""

SAMPLES, MAX_LEFT = 10, 100
"""Items of each kind that are shown, and items that are left alone, at most; all are counted."""

LABEL = 200
"""Characters of an item that are shown, at most."""

REASONS = {
    Reason.CHANGED_LATER: "somebody else changed it later",
    Reason.NAME_TAKEN: "its name is taken by now",
    Reason.COMPACTED: "its past was compacted away",
    Reason.GONE: "it is gone, or what it belongs to is",
    Reason.KIND_NOT_ALLOWED: "the graph no longer allows its kind",
    Reason.CYCLE: "it would become part of itself",
    Reason.CONFIGURATION: "the graph's own settings have no history",
}

Given = Annotated[str, QueryParameter(max_length=256)]
Moment = Annotated[str, QueryParameter(max_length=40)]


@dataclass(frozen=True, slots=True)
class Effect:
    """What becomes of the items of one kind: what is done to how many, and the first of them."""

    label: str
    count: int
    samples: Sequence[str]


@dataclass(frozen=True, slots=True)
class UndoPreview:
    """What a plan does, and what it leaves alone: the first items with the reason of each, and how many there are."""

    effects: Sequence[Effect]
    left: Sequence[tuple[UUID, str, str]]
    left_count: int

    @property
    def is_empty(self) -> bool:
        """Whether nothing is taken back."""
        return not self.effects


class TakeBackPages(Controller):
    """Take back the changes of an author since a revision or a time."""

    path = "/timeline/take-back"

    @get("/", opt=WRITES)
    async def ask(
        self, visit: NamedDependency[Visit], actor: Given = "", since: Moment = "", until: Moment = ""
    ) -> Response[str]:
        """The form and, once it is filled in, what taking back would do."""
        context: dict[str, Any] = {
            "entered": {"actor": actor, "since": since, "until": until},
            "fault": "",
            "preview": None,
        }
        context |= {"actors": [], "authors": {}}
        try:
            async with visit.reading(OPERATION) as view:
                context |= await _choices(view)
                if since and visit.as_of is None:
                    span = await _span(view, actor, since, until)
                    plan = await undoing.undo_changes(view.tx, visit.graph, OPERATION, span, dry_run=True)
                    context |= {"span": span, "preview": await _preview(view, plan)}
        except (InvalidInput, TooLarge) as error:
            return render(visit, "timeline/take_back.html", status=400, **(context | {"fault": error.message}))
        return render(visit, "timeline/take_back.html", **context)

    @post("/", status_code=200)
    async def take_back(self, visit: NamedDependency[Visit]) -> Response[str] | Redirect:
        """Take back what the dry run has shown, and nothing that was written since; then the receipt."""
        span = ChangeRange(_revision(visit, "since"), _revision(visit, "until"), visit.value("actor") or None)
        async with visit.call(OPERATION).changing(visit.graph) as tx:
            plan = await undoing.undo_changes(tx, visit.graph, OPERATION, span, dry_run=False)
            revision = await graphs.newest_revision(tx, await graphs.get_graph(tx, visit.graph))
        async with visit.reading(OPERATION) as view:
            preview = await _preview(view, plan)
            written = await history.changes_until(view.tx, view.graph, revision, after=revision - 1, limit=1)
            authors = await authors_of(view.tx, {visit.caller.subject, span.actor or ""})
        if preview.is_empty and not preview.left_count:
            return visit.go("timeline", done="nothing")
        change = None if preview.is_empty else written.changes[0]
        return render(visit, "timeline/receipt.html", span=span, preview=preview, change=change, authors=authors)


async def _choices(view: GraphView) -> dict[str, Any]:
    """Those who wrote in the graph of late, for the form."""
    if not view.is_there:
        return {"actors": [], "authors": {}}
    newest = await graphs.newest_revision(view.tx, view.graph)
    actors, _ = await history.actors_of(view.tx, view.graph, newest)
    return {"actors": actors, "authors": await authors_of(view.tx, actors)}


async def _span(view: GraphView, actor: str, since: str, until: str) -> ChangeRange:
    """The changes that are meant, as revisions. Raises InvalidInput."""
    if not view.is_there:
        raise InvalidInput("There is no such graph yet", path="since")
    first = await moments.find_moment(view.tx, view.graph, since)
    last = await moments.find_moment(view.tx, view.graph, until or None)
    newest = await graphs.newest_revision(view.tx, view.graph)
    begin, end = first.revision if first else 0, newest if last is None else last.revision
    if end < begin:
        raise InvalidInput("The end is before the beginning", path="until")
    return ChangeRange(begin, end, actor or None)


def _revision(visit: Visit, name: str) -> int:
    given = visit.value(name)
    if not given.isascii() or not given.isdecimal() or len(given) > 15:
        raise InvalidInput("Look at what it would do first", path=name)
    return int(given)


async def _preview(view: GraphView, plan: UndoPlan) -> UndoPreview:
    """What a plan does, in words of the console."""
    left_ids = [skipped.id for skipped in plan.skipped[:MAX_LEFT]]
    labels = await _labels(view, [*plan.deleted[:SAMPLES], *plan.removed_observations[:SAMPLES], *left_ids])
    restored = [node.fields.name or node.fields.content or str(node.id) for node in plan.restored]
    effects = [
        _effect(
            "memories and entities removed, with all that is said of them",
            [labels.get(id_, str(id_)) for id_ in plan.deleted],
        ),
        _effect("memories and entities put back as they were", restored),
        _effect("observations removed", [labels.get(id_, str(id_)) for id_ in plan.removed_observations]),
        _effect("observations put back", [observation.content for observation in plan.restored_observations]),
        _effect("relations removed", len(plan.removed_relations)),
        _effect("relations put back", len(plan.restored_relations) + len(plan.rewritten_relations)),
        _effect("names removed", [alias.name for alias in plan.removed_aliases]),
        _effect("names put back", [alias.name for alias in plan.restored_aliases]),
    ]
    left = [
        (skipped.id, labels.get(skipped.id, str(skipped.id)), REASONS[skipped.reason])
        for skipped in plan.skipped[:MAX_LEFT]
    ]
    return UndoPreview([effect for effect in effects if effect.count], left, len(plan.skipped))


def _effect(label: str, items: Sequence[str] | int) -> Effect:
    if isinstance(items, int):
        return Effect(label, items, ())
    return Effect(label, len(items), [item[:LABEL] for item in items[:SAMPLES]])


async def _labels(view: GraphView, ids: Sequence[UUID]) -> dict[UUID, str]:
    """What people know items by: the name of an entity, the text of an observation or a fact."""
    if not ids:
        return {}
    said = await observations.observations_by_id(view.tx, view.graph, ids)
    found = {id_: observation.content[:LABEL] for id_, observation in said.items()}
    return found | await naming.names_of(view, ids)
