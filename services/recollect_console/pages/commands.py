"""Commands: the pages, graphs and nodes whose names begin with what was typed, for the dialog and as a page."""

from typing import Annotated

import msgspec
from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import naming
from recollect.retrieval.search import service as search
from recollect_console.navigation import ENTRIES
from recollect_console.rendering import render
from recollect_console.visit import Visit

MAX_FOUND = 20
"""Graphs, and names of nodes, that are listed, at most."""

Typed = Annotated[str, QueryParameter(max_length=512)]


class Command(msgspec.Struct, frozen=True):
    """Something to open, with what it is: a page, a graph or a node."""

    label: str
    what: str
    href: str


class CommandsPages(Controller):
    """What can be opened by its name."""

    path = "/commands"

    @get("/")
    async def show(self, visit: NamedDependency[Visit], q: Typed = "") -> Response[str]:
        """The search as a page, for browsers without scripts."""
        return render(visit, "commands.html", found=await _found(visit, q.strip()), q=q)

    @get("/found")
    async def found(self, visit: NamedDependency[Visit], q: Typed = "") -> Response[bytes]:
        """The same as JSON, for the dialog."""
        return Response(msgspec.json.encode(await _found(visit, q.strip())), media_type="application/json")


async def _found(visit: Visit, typed: str) -> list[Command]:
    async with visit.reading("completion/complete") as view:
        named = await _nodes(visit, view, typed) if typed else []
    return [*_pages(visit, typed), *_graphs(visit, typed), *named]


def _pages(visit: Visit, typed: str) -> list[Command]:
    return [
        Command(entry.label, "Page", visit.address(entry.page))
        for entry in ENTRIES
        if typed.lower() in entry.label.lower() and visit.caller.may(entry.scope)
    ]


def _graphs(visit: Visit, typed: str) -> list[Command]:
    """Graphs in their present state: a revision is one of its own graph."""
    found = [graph.name for graph in visit.graphs if graph.name.lower().startswith(typed.lower())]
    return [Command(name, "Graph", visit.address_in(name, "memory", as_of=None)) for name in found[:MAX_FOUND]]


async def _nodes(visit: Visit, view: GraphView, typed: str) -> list[Command]:
    """Nodes by their present names; in the past, those that had them then."""
    names, _ = await search.complete_names(view, typed, limit=MAX_FOUND)
    there = await naming.find_named(view, names)
    return [
        Command(name, "Node", visit.address(f"node/{there[name].id}"))
        for name in names
        if name in there and not there[name].placeholder
    ]
