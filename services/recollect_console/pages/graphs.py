"""The graphs of the organisation: made, renamed, configured and erased."""

import json
from typing import Any
from uuid import UUID

import msgspec
from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.accounts.identity.pasted_secrets import refuse_secrets
from recollect.accounts.usage import service as usage
from recollect.curation.duplicates import deduplication
from recollect.errors import InvalidInput, RecollectError
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, GraphPatch, NewGraph
from recollect.retention.erasure import service as erasure
from recollect.times import MAX_ZONE
from recollect_console.access import ADMIN
from recollect_console.paging import PAGE, paging_of
from recollect_console.refusals import unchanged
from recollect_console.rendering import render
from recollect_console.visit import DEFAULT_GRAPH, Visit
from recollect_gateway.management.memory.graphs import Cursor
from recollect_http.requests.argument_types import check_metadata
from recollect_http.requests.parsing import check_text
from recollect_http.web.refusals import FormRefusal, mark_of, refusal_of

MAX_KINDS, MAX_KIND = 200, 256
POLICIES = [("lww", "The last write wins"), ("manual", "Both versions stay, until somebody settles it")]
FIELDS = ("name", "conflict_policy", "kinds", "metadata", "time_zone")
NEW = {"name": "", "conflict_policy": "lww", "kinds": "", "metadata": "{}", "time_zone": ""}
LIST = "settings/graphs"
DONE = {"made": "The graph is made.", "saved": "The graph is changed.", "erased": "The graph is erased."}


class GraphSettingsPages(Controller):
    """Graphs: everybody sees them, admins make, change and erase them."""

    path = "/settings/graphs"

    @get("/")
    async def show(self, visit: NamedDependency[Visit], cursor: Cursor = "") -> Response[str]:
        """One page of the graphs, by name."""
        async with visit.reading_tenant() as tx:
            found = await graphs.list_graphs(tx, after=cursor, limit=PAGE + 1)
            stored, _ = await usage.list_stored(tx, after=cursor, limit=PAGE)
        shown = found[:PAGE]
        counts = {each.graph: each.entities + each.facts + each.observations for each in stored}
        paging = paging_of(visit, shown[-1].name if len(found) > PAGE else None)
        return render(visit, "settings/graphs.html", done=DONE, found=shown, counts=counts, paging=paging)

    @get("/new", opt=ADMIN)
    async def ask_for_new(self, visit: NamedDependency[Visit]) -> Response[str]:
        """The form of a new graph."""
        return await _form(visit)

    @post("/", opt=ADMIN)
    async def create(self, visit: NamedDependency[Visit]) -> Redirect | Response[str]:
        """Make an empty graph."""
        try:
            patch = _patch(visit)
            new = NewGraph(
                visit.value("name"),
                patch.conflict_policy or "lww",
                patch.kind_whitelist or None,
                patch.metadata,
                patch.time_zone or None,
            )
            async with visit.db.writing(visit.caller, new.name) as tx:
                await graphs.create_graph(tx, new)
        except RecollectError as error:
            return await _form(visit, refusal=refusal_of(error))
        return visit.go(LIST, done="made")

    @get("/{graph_id:uuid}", opt=ADMIN)
    async def ask_for_change(self, visit: NamedDependency[Visit], graph_id: FromPath[UUID]) -> Response[str]:
        """The form of a graph."""
        return await _form(visit, graph_id)

    @post("/{graph_id:uuid}", opt=ADMIN)
    async def save(self, visit: NamedDependency[Visit], graph_id: FromPath[UUID]) -> Redirect | Response[str]:
        """Change a graph, where it is still as it was shown."""
        named = str(graph_id)
        try:
            async with visit.db.writing(visit.caller, named) as tx:
                before = await graphs.get_graph(tx, named)
                await graphs.configure_graph(tx, named, _patch(visit), "update_graph_config", check=unchanged(visit))
        except RecollectError as error:
            return await _form(visit, graph_id, refusal_of(error))
        if visit.graph == before.name:
            visit.graph = visit.value("name")
        return visit.go(LIST, done="saved")

    @get("/{graph_id:uuid}/delete", opt=ADMIN)
    async def ask_to_erase(self, visit: NamedDependency[Visit], graph_id: FromPath[UUID]) -> Response[str]:
        """What is lost with a graph."""
        return await _question(visit, graph_id)

    @post("/{graph_id:uuid}/delete", opt=ADMIN)
    async def erase(self, visit: NamedDependency[Visit], graph_id: FromPath[UUID]) -> Redirect | Response[str]:
        """Erase a graph whose name was typed, where it is still as it was shown."""
        named = str(graph_id)
        try:
            async with visit.db.writing(visit.caller, named) as tx:
                graph = await graphs.get_graph(tx, named)
                if visit.value("typed") != graph.name:
                    raise InvalidInput("Type the name of the graph as it is written here", path="typed")
                await erasure.erase_graph(tx, named, check=unchanged(visit))
        except RecollectError as error:
            return await _question(visit, graph_id, refusal_of(error))
        if visit.graph in (graph.name, named):
            visit.graph = DEFAULT_GRAPH
        return visit.go(LIST, done="erased")


async def _form(visit: Visit, graph_id: UUID | None = None, refusal: FormRefusal | None = None) -> Response[str]:
    async with visit.reading_tenant() as tx:
        graph = None if graph_id is None else await graphs.get_graph(tx, str(graph_id))
    now = NEW if graph is None else _fields(graph)
    context: dict[str, Any] = {
        "edited": graph,
        "now": now,
        "entered": {name: visit.value(name) for name in FIELDS} if refusal else now,
        "seen": "" if graph is None else mark_of(graph),
        "policies": POLICIES,
        "refusal": refusal,
    }
    return render(visit, "settings/graph.html", status=refusal.status if refusal else 200, **context)


async def _question(visit: Visit, graph_id: UUID, refusal: FormRefusal | None = None) -> Response[str]:
    async with visit.reading_tenant() as tx:
        graph = await graphs.get_graph(tx, str(graph_id))
        lost = (await erasure.erase_graph(tx, str(graph_id), dry_run=True)).erased
    return render(
        visit,
        "settings/erase_graph.html",
        status=refusal.status if refusal else 200,
        erased=graph,
        seen=mark_of(graph),
        lost=[(table.replace("_", " "), f"{count:,}") for table, count in sorted(lost.items()) if count],
        typed=visit.value("typed"),
        fault=refusal.text if refusal else "",
    )


def _fields(graph: Graph) -> dict[str, str]:
    """What the form shows of a graph."""
    return {
        "name": graph.name,
        "conflict_policy": graph.conflict_policy,
        "kinds": "\n".join(graph.kind_whitelist or ()),
        "metadata": json.dumps(graph.metadata, indent=2, ensure_ascii=False),
        "time_zone": graph.time_zone or "",
    }


def _patch(visit: Visit) -> GraphPatch:
    """What the form asks for. Raises InvalidInput."""
    check_text(entered := {name: visit.value(name) for name in FIELDS})
    refuse_secrets(entered)
    policy, zone = visit.value("conflict_policy") or "lww", visit.value("time_zone")
    if policy not in dict(POLICIES):
        raise InvalidInput("There is no such policy", path="conflict_policy")
    if len(zone) > MAX_ZONE:
        raise InvalidInput("There is no such time zone", path="time_zone")
    return GraphPatch(visit.value("name"), policy, _kinds(visit.value("kinds")), _metadata(visit), zone)


def _kinds(entered: str) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(kind for line in entered.splitlines() if (kind := line.strip())))
    if len(kinds) > MAX_KINDS or any(len(kind) > MAX_KIND for kind in kinds):
        raise InvalidInput(f"There may be {MAX_KINDS} kinds of {MAX_KIND} characters each", path="kinds")
    return kinds


def _metadata(visit: Visit) -> dict[str, Any]:
    try:
        metadata = msgspec.json.decode((visit.value("metadata") or "{}").encode(), type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise InvalidInput('The metadata is a JSON object, such as {"team": "research"}', path="metadata") from None
    check_text(metadata, "metadata")
    check_metadata(metadata, "metadata", visit.request.app.state.settings.max_metadata_size)
    deduplication.require_readable(metadata)
    return metadata
