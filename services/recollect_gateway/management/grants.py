"""/v1/grants: the grants by which people let OAuth clients act in the tenant."""

from datetime import datetime
from typing import Any
from uuid import UUID

from litestar import Controller, Request, delete, get
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from msgspec import Struct

from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import Grant
from recollect.caller import Caller
from recollect.platform.db import Database
from recollect_gateway.errors import ACT_RESPONSES, RESPONSES
from recollect_gateway.guards import BY_SCOPE, requires_admin
from recollect_gateway.management.pages import Limit, Page, page_of

AnyRequest = Request[Caller, Any, State]


class GrantPerson(Struct, frozen=True):
    """The person who gave a grant."""

    id: str
    email: str
    name: str


class GrantBody(Struct, frozen=True):
    """A grant. `graphs` (ids) and `toolsets` null: all, including future ones.

    `client_name` is what the client calls itself. `last_used_at`: when it last got tokens. `revoked_by`: the subject of
    a person or key, the `client` itself, `reuse` of a secret that may be stolen, or the `limit` of grants.
    """

    id: str
    person: GrantPerson
    client_id: str
    client_name: str
    scopes: list[str]
    graphs: list[str] | None
    toolsets: list[str] | None
    resource: str
    created_at: datetime
    created_by: str
    expires_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None


class GrantController(Controller):
    """List and revoke grants."""

    path = "/grants"
    tags = ("grants",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", responses=RESPONSES, summary="List grants")
    async def list_grants(
        self,
        request: AnyRequest,
        db: NamedDependency[Database],
        person: FromQuery[UUID | None] = None,
        cursor: FromQuery[UUID | None] = None,
        limit: Limit = 50,
    ) -> Page[GrantBody]:
        """List the tenant's grants, or those of one person, oldest first, including those that are no longer valid."""
        async with db.transaction(request.user, read_only=True) as tx:
            found = await grants.list_grants(tx, person_id=person, after=cursor, limit=limit + 1)
        return page_of(found, limit, _body, lambda grant: str(grant.id))

    @delete("/{grant_id:uuid}", responses=ACT_RESPONSES, summary="Revoke a grant", status_code=200)
    async def revoke_grant(
        self, request: AnyRequest, db: NamedDependency[Database], grant_id: FromPath[UUID]
    ) -> GrantBody:
        """Revoke a grant and all its tokens at once. Revoking it again changes nothing."""
        async with db.transaction(request.user) as tx:
            return _body(await grants.revoke_grant(tx, grant_id))


def _body(grant: Grant) -> GrantBody:
    return GrantBody(
        id=str(grant.id),
        person=GrantPerson(str(grant.person_id), grant.person_email, grant.person_name),
        client_id=grant.client_id,
        client_name=grant.client_name,
        scopes=list(grant.scopes),
        graphs=None if grant.graph_ids is None else [str(graph_id) for graph_id in grant.graph_ids],
        toolsets=None if grant.toolsets is None else list(grant.toolsets),
        resource=grant.resource,
        created_at=grant.created_at,
        created_by=grant.created_by,
        expires_at=grant.expires_at,
        last_used_at=grant.last_used_at,
        revoked_at=grant.revoked_at,
        revoked_by=grant.revoked_by,
    )
