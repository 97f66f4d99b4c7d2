"""Care: proposed duplicates, memories that expire or were set aside, and what went wrong in a graph."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal, get_args
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from litestar.response import Redirect

from recollect.curation.dismissals import service as dismissals
from recollect.curation.duplicates import proposals
from recollect.curation.duplicates.model import Proposal
from recollect.curation.merging.model import MergedEntity
from recollect.curation.validation import service as validation
from recollect.errors import InvalidInput
from recollect.fairness.computing import collect_yielding
from recollect.graph.entities import service as entities
from recollect.graph.entities.model import ListedObservations
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Version, VersionFilter
from recollect.graph.nodes import naming
from recollect.graph.passages import service as passages
from recollect.jobs import service as jobs
from recollect.jobs.model import JobFilter
from recollect.retention.expiry import service as expiry
from recollect.times import storable
from recollect_console.access import WRITES
from recollect_console.authors import authors_of
from recollect_console.diffs import Part, diff_words
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.management.memory.nodes import node_cursor, node_position
from recollect_gateway.operations.nodes import node_item
from recollect_gateway.operations.revise import ReviseBody, revise
from recollect_http.pages import Cursor, integer, position_of

PAIRS = 10
"""Pairs on a page."""

MAX_TEXT = 2_000
"""Characters of an entity's texts that are compared, the oldest first."""

EXPIRING_WITHIN = timedelta(days=30)
RENEWED_DAYS = 90.0
"""For how long a memory is renewed."""

MAX_FAILED = 20
"""Failed jobs and refused passages that are shown of a graph."""

CHECKED = ("orphaned_relation", "missing_parent")
"""Faults that lead to something that is not there."""

Aside = Literal["outdated", "archived"]
IsAside = Annotated[Aside, QueryParameter()]
IsChecked = Annotated[Literal["", "yes"], QueryParameter()]
DONE = {
    "merged": "They are one now. The merge is one change, which can be taken back.",
    "different": "They are different, for everybody, until somebody takes it back.",
    "proposed": "It is taken back: they may be proposed and merged again.",
    "keep": "It is active again: recall returns it.",
    "renew": f"It is kept for {RENEWED_DAYS:g} days more.",
    "forever": "It no longer expires.",
    "archive": "It is archived: recall leaves it out.",
}
_ACTIONS: dict[str, dict[str, Any]] = {
    "keep": {"status": "active"},
    "renew": {"ttl_days": RENEWED_DAYS},
    "forever": {"ttl_days": 0.0},
    "archive": {"status": "archived"},
}
_LISTS = ("care/expiring", "care/aside")
"""The pages to which an action may lead back."""


@dataclass(frozen=True, slots=True)
class Side:
    """One entity of a pair: its newest version, with its name and texts marked where they differ from the other's."""

    node: Version
    name: Sequence[Part]
    text: Sequence[Part]
    omitted: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entities that may be the same."""

    proposal: Proposal
    sides: tuple[Side, Side]


class CarePages(Controller):
    """What a graph needs a person for."""

    path = "/care"

    @get("/")
    async def show(self, visit: NamedDependency[Visit], cursor: Cursor = None) -> Response[str]:
        """One page of proposed duplicates, the most similar first."""
        offset = position_of(cursor or None, integer) or 0
        async with visit.reading("find_duplicates") as view:
            found = await proposals.list_proposals(view, offset=offset, limit=PAIRS + 1)
            pairs = await _pairs(view, found[:PAIRS])
        following = offset + PAIRS if len(found) > PAIRS else None
        return render(visit, "care/duplicates.html", done=DONE, pairs=pairs, paging=paging_of(visit, following))

    @get("/merge/{node:uuid}/{other_id:uuid}", opt=WRITES)
    async def ask_to_merge(
        self, visit: NamedDependency[Visit], node: FromPath[UUID], other_id: FromPath[UUID]
    ) -> Response[str]:
        """What a merge would do: it is done, and rolled back."""
        async with visit.reading("merge_entities") as view:
            names = await naming.names_of(view, [node, other_id])
        merged = await _merge(visit, node, other_id, commit=False)
        return render(visit, "care/merge.html", merged=merged, kept_id=node, other_id=other_id, names=names)

    @post("/merge/{node:uuid}/{other_id:uuid}")
    async def merge(self, visit: NamedDependency[Visit], node: FromPath[UUID], other_id: FromPath[UUID]) -> Redirect:
        """Merge the second entity into the first."""
        await _merge(visit, node, other_id, commit=True)
        return visit.go("care", done="merged")

    @post("/different/{node:uuid}/{other_id:uuid}")
    async def dismiss(self, visit: NamedDependency[Visit], node: FromPath[UUID], other_id: FromPath[UUID]) -> Redirect:
        """Record that two entities are different."""
        async with visit.changing_tenant() as tx:
            await proposals.dismiss_pair(tx, visit.graph, node, other_id)
        return visit.go("care", done="different")

    @get("/different")
    async def show_different(self, visit: NamedDependency[Visit], cursor: Cursor = None) -> Response[str]:
        """One page of the pairs that were marked as different, the latest first."""
        offset = position_of(cursor or None, integer) or 0
        async with visit.reading("find_duplicates") as view:
            found = await dismissals.list_dismissals(view, offset=offset, limit=PAGE + 1)
            authors = await authors_of(view.tx, (dismissal.dismissed_by for dismissal in found))
        following = offset + PAGE if len(found) > PAGE else None
        paging = paging_of(visit, following)
        return render(visit, "care/different.html", done=DONE, dismissals=found[:PAGE], authors=authors, paging=paging)

    @post("/propose/{node:uuid}/{other_id:uuid}")
    async def propose(self, visit: NamedDependency[Visit], node: FromPath[UUID], other_id: FromPath[UUID]) -> Redirect:
        """Take back that two entities are different."""
        async with visit.changing_tenant() as tx:
            await proposals.take_back_dismissal(tx, visit.graph, node, other_id)
        return visit.go("care/different", done="proposed")

    @get("/expiring")
    async def show_expiring(self, visit: NamedDependency[Visit], cursor: Cursor = None) -> Response[str]:
        """One page of the memories that expire soon, the first to expire first."""
        position = position_of(cursor or None, _expiry_position)
        async with visit.reading("list_expiring") as view:
            found = await expiry.list_expiring(view, within=EXPIRING_WITHIN, after=position, limit=PAGE + 1)
        shown = found[:PAGE]
        following = f"{shown[-1].expires_at.isoformat()}~{shown[-1].memory_id}" if len(found) > PAGE else None
        return render(
            visit,
            "care/expiring.html",
            done=DONE,
            memories=shown,
            days=EXPIRING_WITHIN.days,
            renewed=RENEWED_DAYS,
            paging=paging_of(visit, following),
        )

    @get("/aside")
    async def show_aside(
        self, visit: NamedDependency[Visit], aside: IsAside = "outdated", cursor: Cursor = None
    ) -> Response[str]:
        """One page of the nodes that recall leaves out."""
        filters = VersionFilter(limit=PAGE, status=aside, after=position_of(cursor or None, node_position))
        async with visit.reading("list_nodes") as view:
            found, more = await lineages.list_nodes(view, filters)
            authors = await authors_of(view.tx, (version.created_by for version in found))
        return render(
            visit,
            "care/aside.html",
            done=DONE,
            aside=aside,
            nodes=[node_item(version) for version in found],
            authors=authors,
            paging=paging_of(visit, node_cursor(found[-1]) if more else None),
        )

    @post("/keep/{node:uuid}")
    async def keep(self, visit: NamedDependency[Visit], node: FromPath[UUID]) -> Redirect:
        """Keep, renew or archive a memory, and go back to the list where that was chosen."""
        action = visit.value("action") or "keep"
        if action not in _ACTIONS:
            raise InvalidInput(f"The action is one of {', '.join(_ACTIONS)}", path="action")
        await revise(visit.call("revise"), visit.graph, ReviseBody(id=node, **_ACTIONS[action]))
        back = visit.value("back")
        aside = visit.value("aside") if visit.value("aside") in get_args(Aside) else None
        return visit.go(back if back in _LISTS else "care", done=action, aside=aside)

    @get("/problems")
    async def show_problems(self, visit: NamedDependency[Visit], check: IsChecked = "") -> Response[str]:
        """Passages that no vector was made of, failed jobs and, where asked for, links that lead nowhere."""
        async with visit.reading("validate_graph") as view:
            refused, failed = [], []
            if view.is_there:
                refused = await passages.list_refused(view.tx, view.graph.id, after=None, limit=MAX_FAILED + 1)
                failed = await jobs.list_jobs(view.tx, JobFilter(view.graph.id, None, "failed"), limit=MAX_FAILED + 1)
            names = await naming.names_of(view, [passage.node_id for passage in refused])
            issues = await validation.validate_graph(view) if check else []
        return render(
            visit,
            "care/problems.html",
            refused=refused[:MAX_FAILED],
            failed=failed[:MAX_FAILED],
            is_cut=max(len(refused), len(failed)) > MAX_FAILED,
            names=names,
            check=check,
            dangling=[issue for issue in issues if issue.fault in CHECKED],
        )


async def _merge(visit: Visit, kept: UUID, other: UUID, *, commit: bool) -> MergedEntity:
    async with visit.call("merge_entities").writing(visit.graph, commit=commit) as (tx, revision):
        return await proposals.merge_pair(tx, revision, kept, other)


async def _pairs(view: GraphView, found: Sequence[Proposal]) -> list[Pair]:
    """Each pair with what is to be seen of both sides."""
    ids = list({id_: None for each in found for id_ in (each.node_id, each.other_id)})
    versions = {version.node_id: version for version in await lineages.get_nodes(view, ids)}
    texts = await entities.observations_of(view, ids) if ids else {}
    there = [each for each in found if each.node_id in versions and each.other_id in versions]
    return await collect_yielding(
        Pair(each, _sides(versions[each.node_id], versions[each.other_id], texts)) for each in there
    )


def _sides(one: Version, other: Version, listed: dict[UUID, ListedObservations]) -> tuple[Side, Side]:
    (text, cut), (other_text, other_cut) = (_text(node, listed.get(node.node_id)) for node in (one, other))
    names, texts = diff_words(one.name or "", other.name or ""), diff_words(text, other_text)
    left = Side(one, _without(names, "added"), _without(texts, "added"), cut)
    right = Side(other, _without(names, "removed"), _without(texts, "removed"), other_cut)
    return left, right


def _text(node: Version, listed: ListedObservations | None) -> tuple[str, bool]:
    """All that an entity says, line by line, and whether there is more."""
    lines = [node.content or node.summary or "", *(listed.texts if listed else ())]
    text = "\n".join(line for line in lines if line)
    return text[:MAX_TEXT], len(text) > MAX_TEXT or bool(listed and listed.omitted)


def _without(parts: Sequence[Part], change: str) -> list[Part]:
    return [part for part in parts if part[0] != change]


def _expiry_position(cursor: str) -> tuple[datetime, UUID]:
    at, _, memory_id = cursor.partition("~")
    time = datetime.fromisoformat(at)
    if time.tzinfo is None:
        raise ValueError(cursor)
    try:
        return storable(time), UUID(memory_id)
    except OverflowError:
        raise ValueError(cursor) from None
