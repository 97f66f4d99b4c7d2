"""/v1/graphs/{name}/passages: passages that the embedder did not take."""

from datetime import datetime
from typing import Annotated

from litestar import Controller
from litestar.di import NamedDependency
from msgspec import Meta, Struct

from recollect.caller import Scope
from recollect.graph.graphs import service as graphs
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import RefusedPassage
from recollect.postgres.tenant_database import TenantDatabase
from recollect_gateway.management.guards import CallerRequest, belongs_to
from recollect_http.fields import GraphInPath
from recollect_http.openapi.routes import get
from recollect_http.pages import IdCursor, Limit, Page, page_of


class RefusedBody(Struct, frozen=True):
    """A refused passage: a piece of a memory's text that is found by its words but not by its meaning."""

    id: Annotated[str, Meta(description="Id of the passage, a UUID")]
    memory_id: Annotated[
        str, Meta(description="Id of the memory, a UUID: of an observation, a fact, or an entity for its name")
    ]
    node_id: Annotated[str, Meta(description="Id of the node, a UUID: the fact, or the entity")]
    source: Annotated[str, Meta(description="What the passage is a piece of: `observation`, `fact` or `name`")]
    reason: Annotated[str, Meta(description="Why the embedder refused it")]
    refused_at: Annotated[datetime, Meta(description="Time at which it was refused")]


class PassageController(Controller):
    """List passages that have no vector and get none."""

    path = "/graphs/{name:str}/passages"
    tags = ("graphs",)

    @get(
        "/refused",
        response_description="A page of refused passages.",
        summary="List refused passages",
        opt=belongs_to("admin"),
    )
    async def list_refused_passages(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        name: GraphInPath,
        cursor: IdCursor = None,
        limit: Limit = 50,
    ) -> Page[RefusedBody]:
        """List the passages that the embedder refused, oldest first, each with the reason."""
        request.user.require(Scope.MEMORY_READ)
        async with db.transaction(request.user, read_only=True) as tx:
            graph = await graphs.get_graph(tx, name)
            found = await passages.list_refused(tx, graph.id, after=cursor, limit=limit + 1)
        return page_of(found, limit, _body, lambda passage: str(passage.id))


def _body(passage: RefusedPassage) -> RefusedBody:
    return RefusedBody(
        str(passage.id),
        str(passage.memory_id),
        str(passage.node_id),
        passage.source,
        passage.reason,
        passage.refused_at,
    )
