"""/v1/members and /v1/invitations: the tenant's members, their roles, and invitations."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from litestar import Controller, Response
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody, PathParameter
from msgspec import Meta, Struct

from recollect.accounts.members import service as members
from recollect.accounts.members.model import Invitation, Member
from recollect.accounts.members.sending import invite_and_send
from recollect.accounts.people.model import MAX_EMAIL
from recollect.caller import Role
from recollect.postgres.tenant_database import TenantDatabase
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, requires_admin
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import (
    CreatedAt,
    CreatedBy,
    Email,
    MemberRole,
    PersonInPath,
    PersonName,
    RevokedAt,
)
from recollect_http.openapi.routes import delete, get, patch, post
from recollect_http.pages import IdCursor, Limit, Page, page_of
from recollect_http.preconditions import tagged, unchanged
from recollect_http.problems import CHANGE_RESPONSES, TAGGED_RESPONSES

InvitedEmail = Annotated[str, Meta(description="E-mail address that is invited", examples=["ada@example.com"])]
InvitedRole = Annotated[Role, Meta(description="Role that the person gets in the tenant")]
InvitationInPath = Annotated[UUID, PathParameter(description="Id of the invitation")]


class MemberBody(Struct, frozen=True):
    """A person in the tenant."""

    person_id: Annotated[str, Meta(description="Id of the person, a UUID")]
    email: Email
    name: PersonName
    role: MemberRole
    created_at: Annotated[datetime, Meta(description="Time at which the person became a member")]


class RoleBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The new role of a member."""

    role: Annotated[
        Role,
        Meta(description="New role of the member; only owners give or take the role `owner`, and one always remains"),
    ]


class InvitationBody(Struct, frozen=True):
    """An invitation without its link."""

    id: Annotated[str, Meta(description="Id of the invitation, a UUID")]
    email: InvitedEmail
    role: InvitedRole
    created_at: CreatedAt
    created_by: CreatedBy
    expires_at: Annotated[datetime, Meta(description="Time from which on the link is not valid")]
    accepted_at: Annotated[
        datetime | None, Meta(description="Time at which the person became a member by it; null: not yet")
    ]
    revoked_at: RevokedAt


class IssuedInvitationBody(InvitationBody, frozen=True):
    """An invitation that was sent by mail, or that comes with its link."""

    sent: Annotated[bool, Meta(description="Whether the link was sent to the address by mail")]
    link: Annotated[
        str | None,
        Meta(description="Link to give to the person, which is returned only here; null: it was sent by mail"),
    ]


class InviteBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An invitation to make. Earlier invitations of the same address become invalid."""

    email: Annotated[InvitedEmail, Meta(min_length=3, max_length=MAX_EMAIL)]
    role: InvitedRole = Role.MEMBER


class MemberController(Controller):
    """List members, change their roles, remove them."""

    path = "/members"
    tags = ("members",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", response_description="A page of the tenant's members.", summary="List members")
    async def list_members(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        cursor: IdCursor = None,
        limit: Limit = 50,
    ) -> Page[MemberBody]:
        """List the tenant's members with their roles."""
        async with db.transaction(request.user, read_only=True) as tx:
            found = await members.list_members(tx, after=cursor, limit=limit + 1)
        return page_of(found, limit, _member, lambda member: str(member.person_id))

    @get("/{person_id:uuid}", responses=TAGGED_RESPONSES, response_description="The member.", summary="Get a member")
    async def get_member(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], person_id: PersonInPath
    ) -> Response[MemberBody]:
        """Return a member with its ETag."""
        async with db.transaction(request.user, read_only=True) as tx:
            return tagged(request, _member(await members.get_member(tx, person_id)))

    @patch(
        "/{person_id:uuid}",
        responses=CHANGE_RESPONSES,
        response_description="The member with the new role.",
        summary="Change a member's role",
        before_request=valid_body(RoleBody),
    )
    async def update_member(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        person_id: PersonInPath,
        data: JSONBody[RoleBody],
    ) -> MemberBody:
        """Change a member's role. The response is 409 `last_owner` if no owner would be left.

        Only owners can make somebody an owner, or take that role from an owner.
        """
        async with db.transaction(request.user) as tx:
            check = unchanged(request, _member)
            return _member(await members.change_role(tx, person_id, data.role, check=check))

    @delete(
        "/{person_id:uuid}",
        responses=CHANGE_RESPONSES,
        response_description="The person is no longer a member.",
        summary="Remove a member",
    )
    async def remove_member(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], person_id: PersonInPath
    ) -> None:
        """Remove a person from the tenant. The response is 409 `last_owner` if no owner would be left."""
        async with db.transaction(request.user) as tx:
            await members.remove_member(tx, person_id, check=unchanged(request, _member))


class InvitationController(Controller):
    """Invite people, list and revoke invitations."""

    path = "/invitations"
    tags = ("members",)
    guards = (requires_admin,)
    opt = BY_SCOPE

    @get("/", response_description="A page of the tenant's invitations.", summary="List invitations")
    async def list_invitations(
        self,
        request: CallerRequest,
        db: NamedDependency[TenantDatabase],
        cursor: IdCursor = None,
        limit: Limit = 50,
    ) -> Page[InvitationBody]:
        """List the tenant's invitations, oldest first, including those that are no longer valid."""
        async with db.transaction(request.user, read_only=True) as tx:
            found = await members.list_invitations(tx, after=cursor, limit=limit + 1)
        return page_of(found, limit, lambda row: InvitationBody(**_fields(row)), lambda row: str(row.id))

    @post(
        "/",
        response_description="The invitation, with its link, which is shown only here, unless it was sent by mail.",
        summary="Invite somebody",
        before_request=valid_body(InviteBody),
    )
    async def create_invitation(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State, data: JSONBody[InviteBody]
    ) -> IssuedInvitationBody:
        """Invite somebody by e-mail address. The invitation is valid for a week.

        If the deployment sends mail, the invitation is sent; the request is refused if the mail cannot be sent.
        Otherwise the link is in this response and cannot be retrieved later. Earlier invitations of the same address
        become invalid.
        """
        sent = await invite_and_send(
            db, request.user, data.email, data.role, mailer=state.mailer, settings=state.settings
        )
        return IssuedInvitationBody(**_fields(sent.invitation), sent=sent.link is None, link=sent.link)

    @delete(
        "/{invitation_id:uuid}",
        response_description="The invitation, which is revoked now.",
        summary="Revoke an invitation",
        status_code=200,
    )
    async def revoke_invitation(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], invitation_id: InvitationInPath
    ) -> InvitationBody:
        """Revoke an invitation. Revoking it again changes nothing."""
        async with db.transaction(request.user) as tx:
            return InvitationBody(**_fields(await members.revoke_invitation(tx, invitation_id)))


def _member(member: Member) -> MemberBody:
    return MemberBody(str(member.person_id), member.email, member.name, member.role, member.created_at)


def _fields(invitation: Invitation) -> dict[str, Any]:
    return {
        "id": str(invitation.id),
        "email": invitation.email,
        "role": invitation.role,
        "created_at": invitation.created_at,
        "created_by": invitation.created_by,
        "expires_at": invitation.expires_at,
        "accepted_at": invitation.accepted_at,
        "revoked_at": invitation.revoked_at,
    }
