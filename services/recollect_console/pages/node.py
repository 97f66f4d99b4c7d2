"""A node and its memories: what is said of it, its relations, its versions, and how one of them is changed."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from litestar.response import Redirect

from recollect.accounts.identity.pasted_secrets import refuse_secrets
from recollect.errors import InvalidInput, NotFound
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages import service as lineages
from recollect.graph.lineages.model import Version
from recollect.graph.nodes import naming
from recollect.graph.observations import service as observations
from recollect.graph.relations.model import Walk
from recollect.memory import exploring, reading, searching
from recollect.memory.model import NamedEdge
from recollect.retrieval.recall import service as recalling
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.recall.pages import ListPosition, MemoryPage, Order
from recollect_console.authors import authors_of
from recollect_console.diffs import diff_words, diffs_of
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.management.memory.nodes import edge_cursor, edge_position
from recollect_gateway.operations.forget import ForgetBody, forget
from recollect_gateway.operations.revise import ReviseBody, revise
from recollect_http.pages import Cursor, integer, position_of
from recollect_http.requests.parsing import parse_stored

MAX_TEXT = 10_000
MAX_REASON = 1_000
MAX_COUNTED = 200
"""Relations that are counted before a node is deleted, at most."""

MIN_SIMILARITY, MAX_SIMILAR = 0.5, 20
"""Facts that are shown as close: how similar they are at least, as a cosine, and how many at most."""

MAX_CONFLICTS = 20
"""Versions in conflict with the newest that are shown, at most."""

MAX_TOKENS = 50_000
"""Tokens of the texts on one page, at most."""

Part = Annotated[Literal["observations", "relations", "versions", "close"], QueryParameter()]
DONE = {
    "revised": "It is changed. The former version stays in history.",
    "unchanged": "Nothing differed, so nothing was written.",
    "outdated": "It is outdated: recall returns it only on request.",
    "deleted": "It is deleted. Its history is kept.",
}


class NodePages(Controller):
    """One node, and what is changed of it or of an observation of it."""

    path = "/node/{node:str}"

    @get("/")
    async def show(
        self, visit: NamedDependency[Visit], node: FromPath[str], part: Part = "observations", cursor: Cursor = None
    ) -> Response[str]:
        """The node with one page of its observations, relations or versions. Deleted ones have versions alone."""
        async with visit.reading("get_node") as view:
            node_id = await reading.node_called(view, node)
            newest = await _newest(view, node_id, part)
            shown = await _PARTS[part](visit, view, newest, cursor or None)
            authors = await authors_of(view.tx, {newest.created_by, *shown.pop("subjects")})
            parent = await naming.labels_of(view, [newest.parent_id]) if newest.parent_id else {}
            siblings = await lineages.get_versions(view.tx, view.graph, newest.conflicts[:MAX_CONFLICTS])
        shown |= {"node": newest, "part": part, "authors": authors, "parent": parent}
        changed = await diffs_of((_text(newest), _text(other)) for other in siblings)
        shown["conflicts"] = list(zip(siblings, changed, strict=True))
        return render(visit, "node/show.html", done=DONE, **shown)

    @get("/edit")
    async def edit(self, visit: NamedDependency[Visit], node: FromPath[UUID]) -> Response[str]:
        """The form for a memory, which is an observation or a node."""
        return render(visit, "node/edit.html", **await _edited(visit, node))

    @post("/edit", status_code=200)
    async def save(self, visit: NamedDependency[Visit], node: FromPath[UUID]) -> Response[str] | Redirect:
        """Write a new version. If another user was faster, nothing is written and both texts are shown side by side."""
        shown = await _edited(visit, node)
        try:
            revised = await revise(visit.call("revise"), visit.graph, _change(visit, node, shown["entered"]))
        except InvalidInput as error:
            return render(visit, "node/edit.html", status=400, **(shown | _entered(visit)), fault=error.message)
        if revised.refused:
            entered = _entered(visit)
            conflict = diff_words(shown["entered"]["text"], entered["entered"]["text"])
            return render(
                visit, "node/edit.html", status=409, **(shown | entered), theirs=shown["entered"], conflict=conflict
            )
        return visit.go(f"node/{shown['node'].node_id}", done="unchanged" if revised.unchanged else "revised")

    @get("/forget")
    async def ask_to_forget(self, visit: NamedDependency[Visit], node: FromPath[UUID]) -> Response[str]:
        """What would be forgotten, and what goes with it."""
        shown = await _edited(visit, node)
        lost = await _lost(visit, shown["node"]) if shown["observation"] is None else None
        return render(visit, "node/forget.html", lost=lost, **shown)

    @post("/forget")
    async def forget(self, visit: NamedDependency[Visit], node: FromPath[UUID]) -> Redirect:
        """Mark a memory outdated, or delete it."""
        shown, is_deleted = await _edited(visit, node), visit.value("mode") == "delete"
        mode: Literal["delete", "outdated"] = "delete" if is_deleted else "outdated"
        refuse_secrets(reason := visit.value("reason")[:MAX_REASON] or None, "reason")
        body = ForgetBody(ids=[node], reason=reason, mode=mode)
        await forget(visit.call("forget"), visit.graph, body)
        is_last = is_deleted and shown["observation"] is None
        page = "memory" if is_last else f"node/{shown['node'].node_id}"
        return visit.go(page, done="deleted" if is_deleted else "outdated")


async def _lost(visit: Visit, node: Version) -> dict[str, int]:
    """How many observations and relations are deleted with a node; MAX_COUNTED stands for that many or more."""
    async with visit.reading("get_node") as view:
        _, listed = await reading.get_node(view, node.node_id)
        edges = await exploring.edges_at(view, node.node_id, Walk(), limit=MAX_COUNTED)
    return {"observations": len(listed.texts) + listed.omitted, "relations": len(edges.links)}


async def _newest(view: GraphView, node_id: UUID, part: str) -> Version:
    """The newest version; of a deleted node the last one that it had, where its versions are shown."""
    if part != "versions":
        return (await reading.get_node(view, node_id))[0]
    (newest,), _ = await reading.history(view, node_id, limit=1)
    return newest


async def _observations(visit: Visit, view: GraphView, node: Version, cursor: str | None) -> dict[str, Any]:
    """What is said of an entity, newest first, with what is outdated."""
    if node.name is None:
        return {"items": [], "paging": None, "subjects": ()}
    position = None if cursor is None else ListPosition.of_cursor(cursor)
    found = await recalling.recall(
        view,
        [],
        RecallFilter(about=(node.name,), include_outdated=True),
        limit=PAGE,
        token_budget=MAX_TOKENS,
        described=True,
        page=MemoryPage(Order.NEWEST, position),
    )
    ids = [hit.memory_id for hit in found.hits if hit.memory_id != node.node_id]
    written = await observations.observations_by_id(view.tx, view.graph, ids)
    items = [
        {"hit": hit, "attributes": found.attributes[hit.memory_id], "written": written.get(hit.memory_id)}
        for hit in found.hits
        if hit.memory_id != node.node_id
    ]
    subjects = {observation.created_by for observation in written.values()}
    return {"items": items, "paging": paging_of(visit, found.next_cursor), "subjects": subjects}


async def _relations(visit: Visit, view: GraphView, node: Version, cursor: str | None) -> dict[str, Any]:
    """The relations of a node, by type, with the labels of what is at their other ends."""
    page = await exploring.edges_at(view, node.node_id, Walk(), after=position_of(cursor, edge_position), limit=PAGE)
    ends = {link.edge.from_node for link in page.links} | {link.edge.to_node for link in page.links}
    labels = await naming.labels_of(view, sorted(ends))
    by_type: dict[str, list[NamedEdge]] = {}
    for link in page.links:
        by_type.setdefault(link.edge.type, []).append(link)
    return {
        "relations": by_type,
        "labels": labels,
        "paging": paging_of(visit, edge_cursor(page.links[-1]) if page.more else None),
        "subjects": {link.edge.created_by for link in page.links},
    }


async def _versions(visit: Visit, view: GraphView, node: Version, cursor: str | None) -> dict[str, Any]:
    """The versions, newest first, each with how its text differs from the one before."""
    found, more = await reading.history(view, node.node_id, before=position_of(cursor, integer), limit=PAGE)
    older = [*found[1:], None]
    diffs = await diffs_of((_text(before), _text(version)) for version, before in zip(found, older, strict=True))
    return {
        "versions": list(zip(found, diffs, strict=True)),
        "paging": paging_of(visit, found[-1].version if more else None),
        "subjects": {version.created_by for version in found},
    }


async def _close(visit: Visit, view: GraphView, node: Version, cursor: str | None) -> dict[str, Any]:
    """The facts that mean nearly the same, nearest first. Only the present has them."""
    similar = (
        await searching.find_similar(view, node.node_id, threshold=MIN_SIMILARITY, limit=MAX_SIMILAR, edges=False)
        if view.at is None
        else []
    )
    return {"similar": similar, "paging": None, "subjects": ()}


_PARTS = {"observations": _observations, "relations": _relations, "versions": _versions, "close": _close}


async def _edited(visit: Visit, memory_id: UUID) -> dict[str, Any]:
    """A memory with the fields of its form. Raises NotFound, in the past, too, where it is to be read alone."""
    async with visit.reading("get_node") as view:
        found = await reading.find_memory(view, memory_id)
    if found is None:
        raise NotFound("There is no such memory any more.")
    node, observation = found.node, found.observation
    source: Any = node if observation is None else observation
    entered = {
        "text": (node.content or "") if observation is None else observation.content,
        "tags": ", ".join(source.tags),
        "importance": "" if source.importance is None else f"{source.importance:g}",
        "reason": "",
        "version": source.version,
    }
    return {"memory_id": memory_id, "node": node, "observation": observation, "entered": entered}


def _text(version: Version | None) -> str:
    return "" if version is None else version.content or version.summary or ""


def _entered(visit: Visit) -> dict[str, Mapping[str, Any]]:
    """The fields as they were entered."""
    names = ("text", "tags", "importance", "reason", "version")
    return {"entered": {name: visit.value(name) for name in names}}


def _change(visit: Visit, memory_id: UUID, shown: Mapping[str, Any]) -> ReviseBody:
    """What the form asks for; what was left as it was `shown` stays as it is stored. Raises InvalidInput.

    A browser sends other ends of lines than it was sent, and a tag may hold a comma.
    """
    text, tags = _as_sent(visit.value("text")), visit.value("tags")
    if text == _as_sent(shown["text"]):
        text = shown["text"]
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"A text may have {MAX_TEXT} characters", path="text")
    change = {
        "id": str(memory_id),
        "text": text or None,
        "tags": None if tags == shown["tags"].strip() else _tags(tags),
        "importance": _importance(visit.value("importance")),
        "reason": visit.value("reason")[:MAX_REASON] or None,
        "based_on_version": _version(visit.value("version")),
    }
    return parse_stored(ReviseBody, {name: value for name, value in change.items() if value is not None})


def _as_sent(text: str) -> str:
    """A text as a form sends it, with plain ends of lines."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _tags(entered: str) -> list[str]:
    tags = [tag for part in entered.split(",") if (tag := part.strip())]
    if len(tags) > 50 or any(len(tag) > 128 for tag in tags):
        raise InvalidInput("There may be 50 tags of 128 characters each", path="tags")
    return tags


def _importance(entered: str) -> float | None:
    try:
        importance = float(entered) if entered else None
    except ValueError:
        importance = -1
    if importance is not None and not 0 <= importance <= 10:
        raise InvalidInput("The importance is a number from 0 to 10, or empty", path="importance")
    return importance


def _version(entered: str) -> int:
    if not entered.isdecimal() or len(entered) > 9:
        raise InvalidInput("Reload the page: it does not say which version you have read", path="version")
    return int(entered)
