"""/v1/graphs: the tenant's graphs."""

from datetime import datetime
from typing import Annotated, Any, Literal

from litestar import Controller, Response
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody, QueryParameter
from msgspec import UNSET, Meta, Struct, UnsetType

from recollect.caller import Scope
from recollect.curation.duplicates import deduplication
from recollect.distilling.threads import model as distilled
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import Graph, GraphHead, GraphPatch, NewGraph
from recollect.postgres.tenant_database import TenantDatabase
from recollect.times import MAX_ZONE
from recollect_gateway.management.guards import CallerRequest, mirrors, requires_admin
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import (
    OF_METADATA,
    CreatedAt,
    CreatedBy,
    GraphId,
    GraphInPath,
    Metadata,
    Revision,
)
from recollect_http.openapi.routes import get, patch, post
from recollect_http.pages import AsOf, Limit, Page, page_of
from recollect_http.preconditions import tagged, unchanged
from recollect_http.problems import REPLACE_RESPONSES, TAGGED_RESPONSES
from recollect_http.requests.argument_types import END, GraphName, check_metadata
from recollect_http.requests.parsing import check_text

Cursor = Annotated[
    str,
    QueryParameter(
        pattern=f"^[A-Za-z0-9_@-]{{0,128}}{END}",
        description="`next_cursor` of the previous page: only graphs whose names come after this one",
    ),
]
_OF_POLICY = (
    "What happens when a writer has not read the newest version: `lww` (the last write wins) or `manual` (both "
    "versions stay, in conflict, until one settles it)"
)
_OF_KINDS = "Types that new entities and facts may have"
NewName = Annotated[
    GraphName,
    Meta(description="Name of the graph, unique in the tenant, which must not look like an id", examples=["people"]),
]
NewMetadata = Annotated[
    dict[str, Any],
    Meta(description=f"{OF_METADATA}; it replaces the old one", examples=[{"team": "research"}]),
]


_OF_ZONE = "Time zone (IANA) of days and times without an offset"
Zone = Annotated[
    str, Meta(max_length=MAX_ZONE, description=f"{_OF_ZONE}; null: the tenant's", examples=["Europe/Berlin"])
]


class GraphBody(Struct, frozen=True):
    """The configuration of a graph."""

    id: GraphId
    name: Annotated[str, Meta(description="Name of the graph, unique in the tenant")]
    conflict_policy: Annotated[str, Meta(description=_OF_POLICY)]
    kind_whitelist: Annotated[list[str] | None, Meta(description=f"{_OF_KINDS}; null: all")]
    metadata: Metadata
    created_at: CreatedAt
    created_by: CreatedBy
    time_zone: Annotated[str | None, Meta(description=f"{_OF_ZONE}; null: the tenant's")]


class GraphDetailBody(GraphBody, frozen=True):
    """The configuration of a graph, its newest revision, and exact counts of its live contents."""

    revision: Revision
    at: Annotated[datetime, Meta(description="Time at which the revision was written")]
    entities: Annotated[int, Meta(description="Number of entities")]
    facts: Annotated[int, Meta(description="Number of facts")]
    observations: Annotated[int, Meta(description="Number of observations that are not outdated")]
    relations: Annotated[int, Meta(description="Number of relations")]


Policy = Annotated[Literal["lww", "manual"], Meta(description=_OF_POLICY)]
Whitelist = Annotated[
    list[Annotated[str, Meta(max_length=256)]],
    Meta(max_length=200, description=f"{_OF_KINDS}; null or empty: all", examples=[["person", "project"]]),
]


class CreateGraphBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A graph to create."""

    name: NewName
    conflict_policy: Policy = "lww"
    kind_whitelist: Whitelist | None = None
    metadata: Metadata = {}
    time_zone: Zone | None = None


class ConfigureGraphBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a graph to change. Omitted fields stay. Nodes of types that are no longer allowed stay, too."""

    name: NewName | UnsetType = UNSET
    conflict_policy: Policy | UnsetType = UNSET
    kind_whitelist: Whitelist | UnsetType | None = UNSET
    metadata: NewMetadata | UnsetType = UNSET
    time_zone: Zone | UnsetType | None = UNSET

    @property
    def replaces(self) -> bool:
        """Whether it replaces something that others may have changed."""
        return self.metadata is not UNSET or self.kind_whitelist is not UNSET


class GraphController(Controller):
    """List, read, create and update graphs."""

    path = "/graphs"
    tags = ("graphs",)

    @get("/", response_description="A page of graphs.", summary="List graphs", opt=mirrors("list_graphs", tokens=True))
    async def list_graphs(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], cursor: Cursor = "", limit: Limit = 50
    ) -> Page[GraphBody]:
        """List the graphs that the credential may access, sorted by name."""
        request.user.require(Scope.MEMORY_READ)
        async with db.transaction(request.user, read_only=True) as tx:
            found = await graphs.list_graphs(tx, after=cursor, limit=limit + 1)
        return page_of(found, limit, configuration, lambda graph: graph.name)

    @get(
        "/{name:str}",
        responses=TAGGED_RESPONSES,
        response_description="The graph with its revision and counts.",
        summary="Get a graph",
        opt=mirrors("get_graph", "graph_stats", "get_stats", tokens=True),
    )
    async def get_graph(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], name: GraphInPath, as_of: AsOf = None
    ) -> Response[GraphDetailBody]:
        """Return a graph's configuration, its newest revision, exact counts of its contents, and its ETag.

        With `as_of`, revision and counts are those of that moment; the configuration is always the current one.
        """
        request.user.require(Scope.MEMORY_READ)
        check_text({"as_of": as_of})
        async with db.transaction(request.user, read_only=True) as tx:
            view = await graphs.view(tx, name, as_of)
            graphs.require_there(view)
            graph, head = view.graph, await graphs.head_of(view)
            return tagged(request, _detail(graph, head), lasting=lambda _: configuration(graph))

    @post(
        "/",
        response_description="The graph that was created.",
        summary="Create a graph",
        opt=mirrors("create_graph"),
        guards=[requires_admin],
        before_request=valid_body(CreateGraphBody, stored=True),
    )
    async def create_graph(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State, data: JSONBody[CreateGraphBody]
    ) -> GraphBody:
        """Create an empty graph and return it. The response is 409 `graph_exists` if the name is taken."""
        check_metadata(data.metadata, "metadata", state.settings.max_metadata_size)
        deduplication.require_readable(data.metadata)
        distilled.require_readable(data.metadata)
        whitelist = tuple(data.kind_whitelist or ()) or None
        new = NewGraph(data.name, data.conflict_policy, whitelist, data.metadata, data.time_zone)
        async with db.writing(request.user, data.name) as tx:
            return configuration(await graphs.create_graph(tx, new))

    @patch(
        "/{name:str}",
        responses=REPLACE_RESPONSES,
        response_description="The graph after the change.",
        summary="Update a graph",
        opt=mirrors("update_graph_config"),
        before_request=valid_body(ConfigureGraphBody, stored=True),
    )
    async def update_graph(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        state: State,
        name: GraphInPath,
        data: JSONBody[ConfigureGraphBody],
    ) -> GraphBody:
        """Change a graph's name, conflict policy, allowed kinds, metadata or time zone, in one revision.
        Omitted fields stay.

        If nothing changes, no revision is written. `metadata` and `kind_whitelist` replace the old value as a whole, so
        a request with either of them needs `If-Match` with the ETag that was read; without it the response is 428. The
        response is 409 `graph_exists` if the name is taken. Credentials that are restricted to some graphs may not call
        this.
        """
        changes = _patch(data)
        check_metadata(changes.metadata, "metadata", state.settings.max_metadata_size)
        deduplication.require_readable(changes.metadata or {})
        distilled.require_readable(changes.metadata or {})
        check = unchanged(request, configuration, needed=data.replaces)
        async with db.writing(request.user, name) as tx:
            return configuration(await graphs.configure_graph(tx, name, changes, "update_graph_config", check=check))


def _patch(data: ConfigureGraphBody) -> GraphPatch:
    fields = {field: value for field in data.__struct_fields__ if (value := getattr(data, field)) is not UNSET}
    if "kind_whitelist" in fields:
        fields["kind_whitelist"] = tuple(fields["kind_whitelist"] or ())
    if "time_zone" in fields:
        fields["time_zone"] = fields["time_zone"] or ""
    return GraphPatch(**fields)


def configuration(graph: Graph) -> GraphBody:
    """The part of a graph that can be changed, as the API returns it."""
    whitelist = None if graph.kind_whitelist is None else list(graph.kind_whitelist)
    return GraphBody(
        str(graph.id),
        graph.name,
        graph.conflict_policy,
        whitelist,
        graph.metadata,
        graph.created_at,
        graph.created_by,
        graph.time_zone,
    )


def _detail(graph: Graph, head: GraphHead) -> GraphDetailBody:
    body = configuration(graph)
    return GraphDetailBody(
        **{field: getattr(body, field) for field in body.__struct_fields__},
        revision=head.revision,
        at=head.at,
        entities=head.entities,
        facts=head.facts,
        observations=head.observations,
        relations=head.relations,
    )
