"""/v1/graphs/{name}/passages: passages that the embedder did not take."""

from datetime import datetime
from typing import Any
from uuid import UUID

from litestar import Controller, Request, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from msgspec import Struct

from recollect.caller import Caller, Scope
from recollect.graph.graphs import service as graphs
from recollect.graph.passages import service as passages
from recollect.graph.passages.model import RefusedPassage
from recollect.platform.db import Database
from recollect_gateway.errors import RESPONSES
from recollect_gateway.guards import belongs_to
from recollect_gateway.management.pages import Limit, Page, page_of

AnyRequest = Request[Caller, Any, State]


class RefusedBody(Struct, frozen=True):
    """A refused passage: a piece of the memory `memory_id`, which is found by its words but not by its meaning."""

    id: str
    memory_id: str
    node_id: str
    source: str
    reason: str
    refused_at: datetime


class PassageController(Controller):
    """List passages that have no vector and get none."""

    path = "/graphs/{name:str}/passages"
    tags = ("graphs",)

    @get(
        "/refused",
        responses=RESPONSES,
        summary="List refused passages",
        opt=belongs_to("admin"),
    )
    async def list_refused(
        self,
        request: AnyRequest,
        db: NamedDependency[Database],
        name: FromPath[str],
        cursor: FromQuery[UUID | None] = None,
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
