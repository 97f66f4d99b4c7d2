"""/v1/graphs/{name}/dismissals: pairs of entities that look alike and are different."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from litestar import Controller
from litestar.di import NamedDependency
from litestar.params import PathParameter
from msgspec import Meta, Struct

from recollect.caller import Scope
from recollect.curation.dismissals import service as dismissals
from recollect.curation.dismissals.model import Dismissal
from recollect.curation.duplicates import proposals
from recollect.graph.graphs import service as graphs
from recollect.postgres.tenant_database import TenantDatabase
from recollect_gateway.management.guards import CallerRequest, belongs_to, mirrors
from recollect_http.fields import SUBJECT, GraphInPath
from recollect_http.openapi.routes import delete, get, put
from recollect_http.pages import Cursor, Limit, Page, integer, position_of

NodeId = Annotated[UUID, PathParameter(description="Id of one entity")]
OtherId = Annotated[UUID, PathParameter(description="Id of the other entity; the order does not matter")]


class DismissalBody(Struct, frozen=True):
    """A dismissed pair: two entities that are different, however alike they are."""

    node_id: Annotated[str, Meta(description="Id of one entity, a UUID")]
    other_id: Annotated[str, Meta(description="Id of the other entity, a UUID")]
    name: Annotated[str | None, Meta(description="Name that the one has, or had when it was deleted")]
    other: Annotated[str | None, Meta(description="Name that the other has, or had when it was deleted")]
    dismissed_by: Annotated[str, Meta(description=f"Subject that dismissed the pair, {SUBJECT}")]
    dismissed_at: Annotated[datetime, Meta(description="Time at which it was dismissed")]


class DismissalController(Controller):
    """Dismiss proposed duplicates for good, and take that back."""

    path = "/graphs/{name:str}/dismissals"
    tags = ("graphs",)

    @get(
        "/",
        response_description="A page of dismissed pairs.",
        summary="List dismissed pairs",
        opt=mirrors("find_duplicates"),
    )
    async def list_dismissals(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        name: GraphInPath,
        cursor: Cursor = None,
        limit: Limit = 50,
    ) -> Page[DismissalBody]:
        """List the pairs of entities that somebody said are different, the latest first."""
        offset = position_of(cursor, integer) or 0
        async with db.transaction(request.user, read_only=True) as tx:
            view = await graphs.view(tx, name)
            graphs.require_there(view)
            found = await dismissals.list_dismissals(view, offset=offset, limit=limit + 1)
        return Page([_body(pair) for pair in found[:limit]], str(offset + limit) if len(found) > limit else None)

    @put(
        "/{node_id:uuid}/{other_id:uuid}",
        response_description="The pair is dismissed.",
        summary="Dismiss a pair",
        opt=belongs_to("organize", scope=Scope.MEMORY_WRITE),
        status_code=204,
    )
    async def set_dismissal(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        name: GraphInPath,
        node_id: NodeId,
        other_id: OtherId,
    ) -> None:
        """Record that two entities are different: they are neither proposed nor merged as duplicates.

        It holds for everybody until it is taken back. The request may be repeated.
        """
        async with db.transaction(request.user) as tx:
            await proposals.dismiss_pair(tx, name, node_id, other_id)

    @delete(
        "/{node_id:uuid}/{other_id:uuid}",
        response_description="The pair is no longer dismissed.",
        summary="Take back the dismissal of a pair",
        opt=belongs_to("organize", scope=Scope.MEMORY_WRITE),
    )
    async def delete_dismissal(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        name: GraphInPath,
        node_id: NodeId,
        other_id: OtherId,
    ) -> None:
        """Take back that two entities are different. If they were proposed as duplicates, they are again."""
        async with db.transaction(request.user) as tx:
            await proposals.take_back_dismissal(tx, name, node_id, other_id)


def _body(pair: Dismissal) -> DismissalBody:
    return DismissalBody(
        str(pair.node_id), str(pair.other_id), pair.name, pair.other, pair.dismissed_by, pair.dismissed_at
    )
