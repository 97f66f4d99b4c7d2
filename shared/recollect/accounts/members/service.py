"""Use cases of members: invite and join, list, change roles, remove. A tenant that has an owner always has one."""

import secrets
from datetime import timedelta
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.identity.model import hash_secret
from recollect.accounts.members import store
from recollect.accounts.members.model import (
    Invitation,
    IssuedInvitation,
    Member,
    NewMember,
    OpenInvitation,
    given_by,
    require_may_give,
    require_may_take,
    subject_of,
)
from recollect.accounts.members.store import InvitationRecord
from recollect.accounts.people import service as people
from recollect.accounts.people.breached import BreachedPasswords
from recollect.accounts.people.model import Person, PersonSession, normalized_email, person_name
from recollect.caller import Caller, Check, Role, Scope, unconditional
from recollect.cells.databases import Databases
from recollect.crypto.peppers import find_under_any_secret, hashes_under
from recollect.errors import Conflict, ErrorCode, Forbidden, NotFound
from recollect.ids import new_id
from recollect.postgres.transactions import Session, Transaction

INVITATION_LIFETIME = timedelta(days=7)

MAX_MEMBERS = 10_000
"""The most members of a tenant."""

MAX_OPEN_INVITATIONS = 1_000
"""The most invitations of a tenant that nobody has accepted and that are valid."""

MAX_INVITATIONS = 10_000
"""The most invitations of a tenant, void ones included: for a new one, the oldest void one goes."""

_CONFINED = "You signed in through an organisation's provider, which works for that organisation only."
_OF_ONE_TENANT = (
    "The account with which you are signed in is of another organisation alone. Sign out, and open the link again."
)
MAX_SECRET = 100
"""The most characters of an invitation's secret; longer text is refused."""


async def list_members(tx: Transaction, *, after: UUID | None = None, limit: int = 100) -> list[Member]:
    """The tenant's members, in the order in which their accounts were created."""
    return await store.list_members(tx, after=after, limit=limit)


async def get_member(tx: Transaction, person_id: UUID) -> Member:
    """A member of the tenant. Raises NotFound."""
    member = await store.find_member(tx, person_id)
    if member is None:
        raise _no_member()
    return member


async def change_role(tx: Transaction, person_id: UUID, role: Role, *, check: Check[Member] = unconditional) -> Member:
    """Give a member another role, and revoke their invitations to roles that they may not give any more.

    Raises as `check` does, NotFound, Forbidden where the caller may not give or take these roles, Conflict for the last
    owner.
    """
    old_role = await _lock_role(tx, person_id)
    check(await get_member(tx, person_id))
    require_may_give(tx.caller, role, instead_of=old_role)
    if old_role is not role:
        await store.set_role(tx, person_id, role)
    member = await get_member(tx, person_id)
    if role is not Role.OWNER:
        await _require_owner_left(tx, person_id, old_role)
    if old_role is not role:
        await audit.record(tx, Action.MEMBER_ROLE_CHANGED, named("person", person_id), was=old_role, role=role)
        await _revoke_invitations_of(tx, person_id, except_roles=given_by(role))
    return member


async def remove_member(tx: Transaction, person_id: UUID, *, check: Check[Member] = unconditional) -> None:
    """Remove a member; their grants to clients end with the membership, and their invitations are revoked.

    Raises as `check` does, NotFound, Forbidden where the caller may not take this role (members may always remove
    themselves), Conflict for the last owner.
    """
    role = await _lock_role(tx, person_id)
    check(await get_member(tx, person_id))
    if tx.caller.subject != subject_of(person_id):
        require_may_take(tx.caller, role)
    await _require_owner_left(tx, person_id, role)
    await store.delete_member(tx, person_id)
    await audit.record(tx, Action.MEMBER_REMOVED, named("person", person_id), was=role)
    await _revoke_invitations_of(tx, person_id, except_roles=given_by(None))


async def invite(tx: Transaction, email: str, role: Role, *, pepper: bytes) -> IssuedInvitation:
    """Invite the person who reads mail at this address; the secret is in the result and nowhere else.

    Earlier invitations of the address are revoked. Raises as `begin_invitation` does.
    """
    issued = await begin_invitation(tx, email, role, pepper=pepper)
    await end_earlier_invitations(tx, issued.invitation.id)
    return issued


async def begin_invitation(tx: Transaction, email: str, role: Role, *, pepper: bytes) -> IssuedInvitation:
    """Invite a person; earlier invitations of the address stay valid until `end_earlier_invitations`.

    Raises InvalidInput, Forbidden where the caller may not give the role, or Conflict for too many open ones.
    """
    require_may_give(tx.caller, role)
    email = normalized_email(email)
    await store.lock_invitations(tx)  # So that of two concurrent invitations, one is the earlier.
    await _make_room_for_invitation(tx, email)
    secret = secrets.token_urlsafe(32)
    invitation = await store.insert_invitation(
        tx,
        email=email,
        role=role,
        secret_hash=hash_secret(secret, pepper),
        lifetime=INVITATION_LIFETIME,
    )
    await audit.record(tx, Action.MEMBER_INVITED, named("invitation", invitation.id), role=role)
    return IssuedInvitation(invitation, secret)


async def _make_room_for_invitation(tx: Transaction, email: str) -> None:
    """Let the oldest void invitation go where the tenant has as many as it may; operators may make more."""
    if tx.caller.is_operator:
        return
    stored, still_open = await store.count_invitations(tx, email, most=MAX_INVITATIONS)
    has_room = stored < MAX_INVITATIONS or await store.forget_void_invitation(tx)
    if still_open >= MAX_OPEN_INVITATIONS or not has_room:
        raise Conflict(
            f"A tenant can have at most {MAX_OPEN_INVITATIONS:,} open invitations. Revoke one, or wait until some are "
            "accepted or expire.",
            code=ErrorCode.TOO_MANY_OPEN_INVITATIONS,
        )


async def end_earlier_invitations(tx: Transaction, invitation_id: UUID) -> None:
    """Revoke the earlier invitations of an invitation's address."""
    await store.revoke_earlier_invitations(tx, invitation_id)


async def claim_mail(tx: Transaction, invitation_id: UUID, *, per_day: int) -> bool:
    """Whether the tenant may send this invitation by mail; it then counts as sent, unless `give_up_mail` is called."""
    await store.lock_invitations(tx)
    return await store.claim_invitation_mail(tx, invitation_id, per_day=per_day)


async def show_link(tx: Transaction, invitation_id: UUID) -> None:
    """Let the link of an invitation that could not be sent be shown: it does not prove the address of its holder."""
    await store.release_invitation_mail(tx, invitation_id)
    await end_earlier_invitations(tx, invitation_id)


async def give_up_mail(tx: Transaction, invitation_id: UUID) -> None:
    """Revoke an invitation that could not be sent; it does not count as sent. Raises NotFound."""
    await store.release_invitation_mail(tx, invitation_id)
    await revoke_invitation(tx, invitation_id)


async def list_invitations(tx: Transaction, *, after: UUID | None = None, limit: int = 100) -> list[Invitation]:
    """The tenant's invitations, oldest first, void ones included."""
    return await store.list_invitations(tx, after=after, limit=limit)


async def revoke_invitation(tx: Transaction, invitation_id: UUID) -> Invitation:
    """Revoke an invitation; doing it twice changes nothing. Raises NotFound."""
    before = await store.lock_invitation(tx, invitation_id)
    invitation = await store.revoke_invitation(tx, invitation_id)
    if before is None or invitation is None:
        raise NotFound("There is no such invitation.", code=ErrorCode.INVITATION_NOT_FOUND)
    if before.revoked_at is None and invitation.revoked_at is not None:
        await audit.record(tx, Action.INVITATION_REVOKED, named("invitation", invitation_id))
    return invitation


async def _revoke_invitations_of(tx: Transaction, person_id: UUID, *, except_roles: frozenset[Role]) -> None:
    """Revoke invitations by a person that nobody has accepted, except for those to the roles `except_roles`."""
    for invitation_id in await store.revoke_invitations_of(tx, subject_of(person_id), except_roles=except_roles):
        await audit.record(tx, Action.INVITATION_REVOKED, named("invitation", invitation_id))


async def open_invitation(databases: Databases, secret: str, *, pepper: bytes) -> OpenInvitation:
    """The valid invitation of this secret. Raises NotFound, with one message for every reason why it is not valid."""
    record = None
    if secret and len(secret) <= MAX_SECRET:

        async def find(session: Session) -> InvitationRecord | None:
            return await find_under_any_secret(
                pepper, lambda accepted: store.find_invitation(session, hash_secret(secret, accepted))
            )

        record = await databases.find_in_any_cell(
            secret, find, stored_hashes=lambda: hashes_under(pepper, lambda accepted: hash_secret(secret, accepted))
        )
    if (
        record is None
        or record.tenant_status != "active"
        or record.accepted_at is not None
        or record.revoked_at is not None
        or record.expires_at <= record.read_at
    ):
        raise _void()
    return OpenInvitation(
        record.tenant_id,
        record.tenant,
        record.tenant_name,
        record.id,
        record.email,
        Role(record.role),
        proves_address=record.mailed_at is not None,
    )


async def join(
    databases: Databases, invitation: OpenInvitation, person: Person | PersonSession, *, address: str | None = None
) -> None:
    """Make the invited person a member and use the invitation up. `address`: their address, for the tenant's audit log.

    Raises Forbidden for a person with another e-mail address, NotFound for an invitation that was used or revoked
    meanwhile, Conflict for a member, Unauthenticated for an account that is deleted meanwhile. Then it is not used up.
    """
    if person.email != invitation.email:
        raise Forbidden(f"This invitation is for {invitation.email}. Sign in with that address.")
    if isinstance(person, PersonSession) and person.confined_to is not None:
        raise Forbidden(_CONFINED if person.account_tenant is None else _OF_ONE_TENANT)
    person_id = person.id if isinstance(person, Person) else person.person_id
    async with (
        people.account_locked(databases, person_id),
        databases.of(invitation.tenant_id).transaction(_joining(invitation, person_id, address)) as tx,
    ):
        if tx.is_in_home_cell:
            await people.lock_account_shared(tx, person_id)
        else:
            await people.copy_person(tx, person_id, person.email, person.name)
        await _accept(tx, invitation.id, person_id)


async def join_with_new_account(
    databases: Databases,
    invitation: OpenInvitation,
    name: str,
    password: str,
    *,
    breached: BreachedPasswords | None = None,
    address: str | None = None,
) -> NewMember:
    """Make an account for the invited person, and make them a member.

    By an invitation that proves the address, the account is one of no single tenant. By any other it is of the inviting
    tenant alone, whether or not the address has other accounts: so its holder neither gets into another tenant nor
    learns who has an account. Raises InvalidInput for the name or the password, Conflict where a member has this
    address, and as `join` does.
    """
    if invitation.proves_address:
        await _require_no_account(databases, invitation)
        person = await people.register(databases, invitation.email, name, password, breached=breached)
        await join(databases, invitation, person, address=address)
        return NewMember(person.id, None)
    name = person_name(name)
    password_hash = await people.hash_new_password(databases, invitation.email, name, password, breached=breached)
    person_id = new_id()
    async with databases.of(invitation.tenant_id).transaction(_joining(invitation, person_id, address)) as tx:
        if await store.has_account(tx, invitation.email):
            raise _is_member()
        await people.register_in_tenant(tx, person_id, invitation.email, name, password_hash)
        await _accept(tx, invitation.id, person_id)
    return NewMember(person_id, invitation.tenant_id)


async def _require_no_account(databases: Databases, invitation: OpenInvitation) -> None:
    async with databases.of(invitation.tenant_id).transaction(
        _joining(invitation, invitation.id, None), read_only=True
    ) as tx:
        if await store.has_account(tx, invitation.email):
            raise _is_member()


async def accept_for(tx: Transaction, invitation_id: UUID, person_id: UUID, email: str) -> None:
    """Accept an invitation for a person whose address the tenant's own identity provider verified.

    Raises Forbidden for another address than the invited one, NotFound for an invitation that is not valid any more.
    """
    if await store.find_invited(tx, invitation_id) != email:
        raise Forbidden("This invitation is for another address than the one that your provider verified.")
    await _accept(tx, invitation_id, person_id)


async def add_member(tx: Transaction, person_id: UUID, role: Role) -> None:
    """Make a person a member without an invitation, as the tenant has decided before; a member stays as they are."""
    await _require_room(tx, person_id)
    if await store.insert_member(tx, person_id, role):
        await audit.record(tx, Action.MEMBER_JOINED, named("person", person_id), role=role)


async def is_member(tx: Transaction, person_id: UUID) -> bool:
    """Whether a person is a member of the tenant."""
    return await store.find_member(tx, person_id) is not None


async def _accept(tx: Transaction, invitation_id: UUID, person_id: UUID) -> None:
    role = await store.accept_invitation(tx, invitation_id)
    if role is None:
        raise _void()
    await _require_room(tx, person_id)
    if not await store.insert_member(tx, person_id, role):
        raise _is_member()
    objects = named("person", person_id), named("invitation", invitation_id)
    await audit.record(tx, Action.MEMBER_JOINED, *objects, role=role)


async def _require_room(tx: Transaction, person_id: UUID) -> None:
    """Raise Conflict where the tenant has as many members as it may, and this person is none of them."""
    await store.lock_number(tx)
    if await store.count_members(tx, most=MAX_MEMBERS) >= MAX_MEMBERS and not await is_member(tx, person_id):
        raise Conflict(
            f"This organisation has {MAX_MEMBERS:,} members, the most that it can have. Ask its admins to remove some.",
            code=ErrorCode.TOO_MANY_MEMBERS,
        )


def _is_member() -> Conflict:
    return Conflict("You are already a member: sign in.", code=ErrorCode.MEMBER_EXISTS)


def _void() -> NotFound:
    """The error for an invitation that is not valid, the same for every reason."""
    return NotFound(
        "This invitation is no longer valid. Ask the person who invited you for a new one.",
        code=ErrorCode.INVITATION_NOT_FOUND,
    )


async def _lock_role(tx: Transaction, person_id: UUID) -> Role:
    """A member's role, locked until the transaction ends; raises NotFound."""
    role = (await store.lock_members(tx, person_id)).get(person_id)
    if role is None:
        raise _no_member()
    return role


def _no_member() -> NotFound:
    return NotFound("There is no such member.", code=ErrorCode.MEMBER_NOT_FOUND)


async def _require_owner_left(tx: Transaction, person_id: UUID, old_role: Role) -> None:
    """Raise Conflict where this person is the only owner."""
    if old_role is not Role.OWNER:
        return
    roles = await store.lock_members(tx, person_id)
    if not any(role is Role.OWNER for other, role in roles.items() if other != person_id):
        raise Conflict("This is the last owner. Make somebody else an owner first.", code=ErrorCode.LAST_OWNER)


def _joining(invitation: OpenInvitation, person_id: UUID, address: str | None) -> Caller:
    scopes = frozenset({Scope.MEMORY_READ})
    return Caller(invitation.tenant_id, invitation.tenant, subject_of(person_id), scopes=scopes, address=address)
