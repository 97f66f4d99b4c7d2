"""Use cases of members: invite and join, list, change roles, remove. A tenant that has an owner always has one."""

import secrets
from datetime import UTC, datetime, timedelta
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, named
from recollect.accounts.identity.model import hash_secret
from recollect.accounts.members import store
from recollect.accounts.members.model import (
    Invitation,
    IssuedInvitation,
    Member,
    OpenInvitation,
    given_by,
    require_may_give,
    require_may_take,
    subject_of,
)
from recollect.accounts.members.store import InvitationRecord
from recollect.accounts.people import service as people
from recollect.accounts.people.model import Person, PersonSession, normalized_email
from recollect.caller import Caller, Check, Role, Scope, unconditional
from recollect.errors import Conflict, ErrorCode, Forbidden, NotFound
from recollect.peppers import found_under, hashes_under
from recollect.platform.db import Database
from recollect.platform.transactions import Session, Transaction

INVITATION_LIFETIME = timedelta(days=7)
MAX_SECRET = 100
"""Characters of an invitation's secret; what is longer is none."""


async def list_members(tx: Transaction, *, after: UUID | None = None, limit: int = 100) -> list[Member]:
    """The tenant's members, in the order in which they became people."""
    return await store.list_members(tx, after=after, limit=limit)


async def get_member(tx: Transaction, person_id: UUID) -> Member:
    """A member of the tenant. Raises NotFound."""
    member = await store.find_member(tx, person_id)
    if member is None:
        raise _no_member()
    return member


async def change_role(tx: Transaction, person_id: UUID, role: Role, *, check: Check[Member] = unconditional) -> Member:
    """Give a member another role; their invitations for which they may invite no more are void.

    Raises what `check` does, NotFound, Forbidden where the caller may not give or take these roles, Conflict for the
    last owner.
    """
    was = await _held_role(tx, person_id)
    check(await get_member(tx, person_id))
    require_may_give(tx.caller, role, instead_of=was)
    if was is not role:
        await store.set_role(tx, person_id, role)
    member = await get_member(tx, person_id)
    if role is not Role.OWNER:
        await _require_owner_left(tx, person_id, was)
    if was is not role:
        await audit.record(tx, Action.MEMBER_ROLE_CHANGED, named("person", person_id), was=was, role=role)
        await _revoke_invitations_of(tx, person_id, kept=given_by(role))
    return member


async def remove_member(tx: Transaction, person_id: UUID, *, check: Check[Member] = unconditional) -> None:
    """Let a person be no member any more; what they were granted ends with it, and their invitations are void.

    Raises what `check` does, NotFound, Forbidden where the caller may not take this role (oneself anybody may remove),
    Conflict for the last owner.
    """
    was = await _held_role(tx, person_id)
    check(await get_member(tx, person_id))
    if tx.caller.subject != subject_of(person_id):
        require_may_take(tx.caller, was)
    await _require_owner_left(tx, person_id, was)
    await store.delete_member(tx, person_id)
    await audit.record(tx, Action.MEMBER_REMOVED, named("person", person_id), was=was)
    await _revoke_invitations_of(tx, person_id, kept=given_by(None))


async def invite(tx: Transaction, email: str, role: Role, *, pepper: bytes) -> IssuedInvitation:
    """Invite who reads mail at this address; the secret is in the answer and nowhere else.

    Earlier invitations of the address are void. Raises as `begin_invitation` does.
    """
    issued = await begin_invitation(tx, email, role, pepper=pepper)
    await end_earlier_invitations(tx, issued.invitation.id)
    return issued


async def begin_invitation(tx: Transaction, email: str, role: Role, *, pepper: bytes) -> IssuedInvitation:
    """Invite somebody, and let earlier invitations of the address stand until `end_earlier_invitations`.

    Raises InvalidInput, or Forbidden where the caller may not give the role.
    """
    require_may_give(tx.caller, role)
    email = normalized_email(email)
    await store.lock_invitations(tx)  # Who invites at the same moment is earlier or later, and never neither.
    secret = secrets.token_urlsafe(32)
    invitation = await store.insert_invitation(
        tx,
        email=email,
        role=role,
        secret_hash=hash_secret(secret, pepper),
        expires_at=datetime.now(UTC) + INVITATION_LIFETIME,
    )
    await audit.record(tx, Action.MEMBER_INVITED, named("invitation", invitation.id), role=role)
    return IssuedInvitation(invitation, secret)


async def end_earlier_invitations(tx: Transaction, invitation_id: UUID) -> None:
    """Make void what the address of an invitation has from before it."""
    await store.revoke_earlier_invitations(tx, invitation_id)


async def claim_mail(tx: Transaction, invitation_id: UUID, *, per_day: int) -> bool:
    """Whether the tenant may send this invitation by mail; it then counts as sent until it is told that it was not."""
    await store.lock_invitations(tx)
    return await store.claim_invitation_mail(tx, invitation_id, per_day=per_day)


async def give_up_mail(tx: Transaction, invitation_id: UUID) -> None:
    """Make an invitation void that could not be sent; it counts as none that was. Raises NotFound."""
    await store.release_invitation_mail(tx, invitation_id)
    await revoke_invitation(tx, invitation_id)


async def list_invitations(tx: Transaction, *, after: UUID | None = None, limit: int = 100) -> list[Invitation]:
    """The tenant's invitations, oldest first, void ones too."""
    return await store.list_invitations(tx, after=after, limit=limit)


async def revoke_invitation(tx: Transaction, invitation_id: UUID) -> Invitation:
    """Make an invitation void; doing it twice changes nothing. Raises NotFound."""
    held = await store.lock_invitation(tx, invitation_id)
    invitation = await store.revoke_invitation(tx, invitation_id)
    if held is None or invitation is None:
        raise NotFound("There is no such invitation.", code=ErrorCode.INVITATION_NOT_FOUND)
    if held.revoked_at is None and invitation.revoked_at is not None:
        await audit.record(tx, Action.INVITATION_REVOKED, named("invitation", invitation_id))
    return invitation


async def _revoke_invitations_of(tx: Transaction, person_id: UUID, *, kept: frozenset[Role]) -> None:
    """Make void which a person made and nobody has accepted; `kept`: the roles of those that stay."""
    for invitation_id in await store.revoke_invitations_of(tx, subject_of(person_id), kept=kept):
        await audit.record(tx, Action.INVITATION_REVOKED, named("invitation", invitation_id))


async def open_invitation(db: Database, secret: str, *, pepper: bytes) -> OpenInvitation:
    """What an invitation that holds says. Raises NotFound, alike for every reason why it does not."""
    record = None
    if secret and len(secret) <= MAX_SECRET:

        async def asked(session: Session) -> InvitationRecord | None:
            return await found_under(pepper, lambda each: store.find_invitation(session, hash_secret(secret, each)))

        record = await db.find_in_any_cell(
            secret, asked, held_as=lambda: hashes_under(pepper, lambda each: hash_secret(secret, each))
        )
    if (
        record is None
        or record.tenant_status != "active"
        or record.accepted_at is not None
        or record.revoked_at is not None
        or record.expires_at <= datetime.now(UTC)
    ):
        raise _void()
    return OpenInvitation(
        record.tenant_id, record.tenant, record.tenant_name, record.id, record.email, Role(record.role)
    )


async def join(
    db: Database, invitation: OpenInvitation, person: Person | PersonSession, *, address: str | None = None
) -> None:
    """Make who was invited a member, once. `address`: where they are, for the tenant's audit log.

    Raises Forbidden for a person of another address, NotFound where it was used or revoked meanwhile, Conflict for who
    is a member already, Unauthenticated for one whose account is deleted meanwhile: then it is not used up.
    """
    if person.email != invitation.email:
        raise Forbidden(f"This invitation is for {invitation.email}. Sign in with that address.")
    if isinstance(person, PersonSession) and person.confined_to is not None:
        raise Forbidden("You signed in by an organisation's provider, which is good for that organisation only.")
    person_id = person.id if isinstance(person, Person) else person.person_id
    async with people.account_held(db, person_id), db.transaction(_joining(invitation, person_id, address)) as tx:
        if tx.at_home:
            await people.hold_account(tx, person_id)
        else:
            await people.copy_person(tx, person_id, person.email, person.name)
        await _accept(tx, invitation.id, person_id)


async def accept_for(tx: Transaction, invitation_id: UUID, person_id: UUID, email: str) -> None:
    """Make a person a member, once, whose address the tenant's own identity provider verified.

    Raises Forbidden for another address than the one that was invited, NotFound where the invitation holds no more.
    """
    if await store.find_invited(tx, invitation_id) != email:
        raise Forbidden("This invitation is for another address than the one that your provider verified.")
    await _accept(tx, invitation_id, person_id)


async def add_member(tx: Transaction, person_id: UUID, role: Role) -> None:
    """Make a person a member, for whom the tenant has decided it already; nothing where they are one."""
    if await store.insert_member(tx, person_id, role):
        await audit.record(tx, Action.MEMBER_JOINED, named("person", person_id), role=role)


async def is_member(tx: Transaction, person_id: UUID) -> bool:
    """Whether a person is a member of the tenant."""
    return await store.find_member(tx, person_id) is not None


async def _accept(tx: Transaction, invitation_id: UUID, person_id: UUID) -> None:
    role = await store.accept_invitation(tx, invitation_id)
    if role is None:
        raise _void()
    if not await store.insert_member(tx, person_id, role):
        raise Conflict("You are a member already.", code=ErrorCode.MEMBER_EXISTS)
    objects = named("person", person_id), named("invitation", invitation_id)
    await audit.record(tx, Action.MEMBER_JOINED, *objects, role=role)


def _void() -> NotFound:
    """Of an invitation that holds no more, alike for every reason why."""
    return NotFound(
        "This invitation holds no more. Ask who invited you for another.", code=ErrorCode.INVITATION_NOT_FOUND
    )


async def _held_role(tx: Transaction, person_id: UUID) -> Role:
    """A member's role, which nobody changes until the transaction ends; raises NotFound."""
    role = (await store.lock_members(tx, person_id)).get(person_id)
    if role is None:
        raise _no_member()
    return role


def _no_member() -> NotFound:
    return NotFound("There is no such member.", code=ErrorCode.MEMBER_NOT_FOUND)


async def _require_owner_left(tx: Transaction, person_id: UUID, was: Role) -> None:
    """Raise Conflict where no other owner is left."""
    if was is not Role.OWNER:
        return
    roles = await store.lock_members(tx, person_id)
    if not any(role is Role.OWNER for other, role in roles.items() if other != person_id):
        raise Conflict("This is the last owner. Make somebody else an owner first.", code=ErrorCode.LAST_OWNER)


def _joining(invitation: OpenInvitation, person_id: UUID, address: str | None) -> Caller:
    scopes = frozenset({Scope.MEMORY_READ})
    return Caller(invitation.tenant_id, invitation.tenant, subject_of(person_id), scopes=scopes, address=address)
