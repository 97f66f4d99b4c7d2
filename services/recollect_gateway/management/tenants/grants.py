"""/v1/grants: the grants by which people let OAuth clients act in the tenant."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from litestar import Controller
from litestar.di import NamedDependency
from litestar.params import PathParameter, QueryParameter
from msgspec import Meta, Struct

from recollect.accounts.oauth.grants import service as grants
from recollect.accounts.oauth.grants.model import Grant
from recollect.postgres.tenant_database import TenantDatabase
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, requires_admin
from recollect_http.fields import (
    CreatedAt,
    CreatedBy,
    Email,
    GraphIds,
    PersonName,
    RevokedAt,
    ScopeNames,
    Toolsets,
)
from recollect_http.openapi.routes import delete, get
from recollect_http.pages import IdCursor, Limit, Page, page_of

OfPerson = Annotated[UUID | None, QueryParameter(description="Only grants of the person with this id")]
GrantInPath = Annotated[UUID, PathParameter(description="Id of the grant")]


class GrantPerson(Struct, frozen=True):
    """The person who gave a grant."""

    id: Annotated[str, Meta(description="Id of the person, a UUID")]
    email: Email
    name: PersonName


class GrantBody(Struct, frozen=True):
    """A grant: what a person lets an OAuth client do in the tenant."""

    id: Annotated[str, Meta(description="Id of the grant, a UUID")]
    person: Annotated[GrantPerson, Meta(description="Person who gave the grant")]
    client_id: Annotated[str, Meta(description="Id of the OAuth client")]
    client_name: Annotated[str, Meta(description="Name that the client gives itself, which nobody has verified")]
    scopes: ScopeNames
    graphs: GraphIds
    toolsets: Toolsets
    resource: Annotated[str, Meta(description="Address of the MCP endpoint at which the tokens are valid")]
    created_at: CreatedAt
    created_by: CreatedBy
    expires_at: Annotated[datetime, Meta(description="Time at which the grant ends if its tokens are not refreshed")]
    last_used_at: Annotated[datetime | None, Meta(description="Time at which the client last got tokens; null: never")]
    revoked_at: RevokedAt
    revoked_by: Annotated[
        str | None,
        Meta(
            description="What revoked it: the subject of a person or key, `client`, `reuse` (of a secret that may be "
            "stolen) or `limit` (of grants); null: not revoked"
        ),
    ]


class GrantController(Controller):
    """List and revoke grants."""

    path = "/grants"
    tags = ("grants",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", response_description="A page of the tenant's grants.", summary="List grants")
    async def list_grants(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        person: OfPerson = None,
        cursor: IdCursor = None,
        limit: Limit = 50,
    ) -> Page[GrantBody]:
        """List the tenant's grants, or those of one person, oldest first, including those that are no longer valid."""
        async with db.transaction(request.user, read_only=True) as tx:
            found = await grants.list_grants(tx, person_id=person, after=cursor, limit=limit + 1)
        return page_of(found, limit, _body, lambda grant: str(grant.id))

    @delete(
        "/{grant_id:uuid}",
        response_description="The grant, which is revoked now.",
        summary="Revoke a grant",
        status_code=200,
    )
    async def revoke_grant(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], grant_id: GrantInPath
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
