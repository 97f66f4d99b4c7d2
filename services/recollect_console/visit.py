"""One request of a signed-in person for a page of one of their tenants."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from litestar.response import Redirect

from recollect.accounts.deletion_requests import service as deletion_requests
from recollect.accounts.deletion_requests.model import DeletionRequest
from recollect.accounts.people.model import Membership, PersonSession
from recollect.caller import Caller, Scope
from recollect.curation.duplicates import proposals
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, Moment
from recollect.graph.graphs.view import GraphView
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction
from recollect_gateway.calls import Call, Services
from recollect_http.requests import AnyRequest
from recollect_http.web.rendering import go_to

DEFAULT_GRAPH = "default"
"""The graph that the first memory makes: until then it is empty, and no error."""

MAX_GRAPHS = 200
"""Graphs that the frame offers, by name."""

DONE = "done"
"""The parameter by which a page says what was done, as one of its own words."""


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a form: the name that it has on the person's machine, its media type, and its content."""

    name: str
    media_type: str
    content: bytes


@dataclass(slots=True)
class Visit:
    """A person at a page: as whom they call (`caller`), which graph they look at, and at which moment (`as_of`).

    `form`: the fields of the form that was sent, which came from our own page, and `files` those in it. `graphs`,
    `moment`, `open_proposals`, the number of duplicates to decide on, and `deletion`, the request for the deletion of
    the organisation, are known once the page is read.
    """

    request: AnyRequest
    session: PersonSession
    membership: Membership
    caller: Caller
    services: Services
    graph: str
    as_of: str | None = None
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)
    files: Mapping[str, SentFile] = field(default_factory=dict)
    graphs: list[Graph] = field(default_factory=list)
    moment: Moment | None = None
    open_proposals: int = 0
    deletion: DeletionRequest | None = None

    def call(self, operation: str, *, read_only: bool = False) -> Call:
        """This person's call of an operation, by the name that the graph's log has for it."""
        return Call(self.caller, self.services, operation, read_only=read_only)

    @property
    def db(self) -> TenantDatabase:
        """The database of the tenant."""
        return self.services.databases.of(self.caller.tenant_id)

    @asynccontextmanager
    async def reading(self, operation: str) -> AsyncIterator[GraphView]:
        """The page's one transaction, as a view of its graph at its moment. Raises NotFound where there is none."""
        async with self.call(operation, read_only=True).searching(self.graph, self.as_of) as view:
            if self.graph != DEFAULT_GRAPH:
                graphs.require_there(view)
            self.moment, self.graphs = view.at, await graphs.list_graphs(view.tx, limit=MAX_GRAPHS)
            await self._read_frame(view.tx)
            yield view

    @asynccontextmanager
    async def reading_tenant(self) -> AsyncIterator[Transaction]:
        """The one transaction of a page that shows nothing of a graph."""
        async with self.db.transaction(self.caller, read_only=True) as tx:
            self.graphs = await graphs.list_graphs(tx, limit=MAX_GRAPHS)
            await self._read_frame(tx)
            yield tx

    async def _read_frame(self, tx: Transaction) -> None:
        """Read what is around every page; a part of a page has nothing around it."""
        if "hx-request" in self.request.headers:
            return
        self.deletion = await deletion_requests.find_request(tx)
        graph = next((graph for graph in self.graphs if self.graph in (graph.name, str(graph.id))), None)
        if graph is not None:
            self.open_proposals = await proposals.count_proposals(tx, graph.id)

    def changing_tenant(self, *, commit: bool = True) -> AbstractAsyncContextManager[Transaction]:
        """A transaction that changes something of the tenant. `commit` False: a dry run, rolled back."""
        return self.db.transaction(self.caller, commit=commit)

    @property
    def may_write(self) -> bool:
        """Whether the page offers changes: the past is read-only."""
        return self.as_of is None and self.caller.may(Scope.MEMORY_WRITE)

    @property
    def is_admin(self) -> bool:
        """Whether the person manages the tenant."""
        return self.caller.may(Scope.TENANT_ADMIN)

    @property
    def graph_name(self) -> str:
        """The name of the graph, also where the address has its id."""
        return next((graph.name for graph in self.graphs if str(graph.id) == self.graph), self.graph)

    @property
    def page(self) -> str:
        """The first part of the address after the graph, by which the sidebar knows the page."""
        return "".join(self.request.url.path.split("/")[4:5])

    def value(self, name: str) -> str:
        """The one value of a field of the form, without the spaces around it; empty where there is none."""
        return self.form.get(name, [""])[0].strip()

    def address(self, page: str, /, **query: Any) -> str:
        """The address of a page of this graph, at the same moment. A parameter that is None is left out."""
        return self.address_in(self.graph, page, **query)

    def address_in(self, graph: str, page: str, /, **query: Any) -> str:
        """The address of a page of another graph."""
        path = "/".join(quote(part, safe="") for part in ("app", self.caller.tenant, graph, *page.split("/")))
        return _with_query(f"/{path}", {"as_of": self.as_of} | query)

    def here(self, **changes: Any) -> str:
        """The address of this page with other parameters; those that are None are left out."""
        query = {name: self.request.query_params.getall(name) for name in self.request.query_params}
        query.pop(DONE, None)
        return _with_query(self.request.url.path, query | changes)

    @property
    def filters(self) -> list[tuple[str, str]]:
        """The parameters of this page that it keeps when it is shown at another moment."""
        given = self.request.query_params.multi_items()
        return [(name, value) for name, value in given if name not in ("as_of", "cursor", DONE)]

    def go(self, page: str, /, *, done: str | None = None, **query: Any) -> Redirect:
        """Go to a page after a form. `done`: the page's own word for what was done."""
        return go_to(self.address(page, **query, **({DONE: done} if done else {})))


def _with_query(path: str, query: Mapping[str, Any]) -> str:
    given = {name: value for name, value in query.items() if value not in (None, [], "")}
    return f"{path}?{urlencode(given, doseq=True)}" if given else path
