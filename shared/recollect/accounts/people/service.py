"""Use cases of people: create an account, sign in, change a password, list memberships."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from recollect.accounts.audit.model import UNKNOWN, Action
from recollect.accounts.people import acts, passwords, sessions, store
from recollect.accounts.people.breached import BreachedPasswords
from recollect.accounts.people.model import (
    Browser,
    Confinement,
    Credentials,
    IssuedSession,
    Membership,
    Person,
    PersonSession,
    normalized_email,
    person_name,
)
from recollect.cells.databases import Databases
from recollect.errors import Conflict, ErrorCode, Forbidden, InvalidInput, Unauthenticated
from recollect.ids import new_id
from recollect.postgres.database import Database
from recollect.postgres.transactions import Session, Transaction

MAX_TENANT_ACCOUNTS = 20
"""The most accounts of one address, of one tenant each, that a sign-in looks at in a cell, oldest first."""


async def register(
    databases: Databases, email: str, name: str, password: str | None, *, breached: BreachedPasswords | None = None
) -> Person:
    """Create a person, with a password or for sign-in by a provider.

    Raises InvalidInput, or Conflict where the address is taken: call it only for a person who has proved that the
    address is theirs.
    """
    email, name = normalized_email(email), person_name(name)
    password_hash = None
    if password is not None:
        password_hash = await hash_new_password(databases, email, name, password, breached=breached)
    person_id = new_id()
    async with databases.home.personal(person_id) as session:
        person = await store.insert_person(session, person_id, email=email, name=name, password_hash=password_hash)
    if person is None:
        raise Conflict("There is already an account with this address. Sign in.", code=ErrorCode.MEMBER_EXISTS)
    return person


async def hash_new_password(
    databases: Databases, email: str, name: str, password: str, *, breached: BreachedPasswords | None = None
) -> str:
    """The hash of a password that a person of this address and name chooses. Raises InvalidInput if it is refused."""
    await passwords.require_strong(password, (email, name), breached)
    return await passwords.hash_password(
        password, existing_hashes=[account.password_hash for account in await list_accounts(databases, email)]
    )


async def register_in_tenant(tx: Transaction, person_id: UUID, email: str, name: str, password_hash: str) -> None:
    """Create a person of the transaction's tenant alone, who did not prove that this address is theirs.

    The account does not take the address: other tenants, and whoever proves it, may have one of it, too. Raises
    Conflict where this tenant has one.
    """
    await store.act_as_person(tx, person_id)
    if not await store.insert_tenant_account(tx, person_id, email=email, name=name, password_hash=password_hash):
        raise Conflict("There is already an account with this address. Sign in.", code=ErrorCode.MEMBER_EXISTS)


async def is_known(db: Database, email: str) -> bool:
    """Whether a person has proved this address: to be shown only to a person who has proved that it is theirs."""
    async with db.system() as session:
        return await store.find_credentials(session, email) is not None


async def list_accounts(
    databases: Databases, email: str, *, tenant: str | None = None, person_id: UUID | None = None
) -> list[Credentials]:
    """The accounts of an address: the one whose person proved it, if any, then those of one tenant each.

    Of the latter, at most MAX_TENANT_ACCOUNTS of each cell, that of `tenant` (its slug) or of this person among them.
    """
    async with databases.home.system() as session:
        proven = await store.find_credentials(session, email)
    of_tenants = await databases.list_from_all_cells(
        lambda session: store.find_tenant_accounts(
            session, email, tenant=tenant, person_id=person_id, most=MAX_TENANT_ACCOUNTS
        )
    )
    return ([proven] if proven else []) + of_tenants


async def sign_in(
    databases: Databases, email: str, password: str, browser: Browser, *, pepper: bytes, tenant: str | None = None
) -> IssuedSession:
    """Begin a session. Raises Unauthenticated, with one message and after the same time for every reason.

    One reason is that the person changed the password while this one was verified. `tenant`: the slug of the one to
    whose account to sign in where several accounts of the address have this password.
    """
    try:
        email = normalized_email(email)
    except InvalidInput:
        raise Unauthenticated(sessions.REFUSAL) from None
    accounts = await list_accounts(databases, email, tenant=tenant)
    matching = await passwords.matches_each(password, [account.password_hash for account in accounts])
    found = [account for account, matches in zip(accounts, matching, strict=True) if matches]
    if not found:
        raise Unauthenticated(sessions.REFUSAL)
    account = next((account for account in found if tenant and account.tenant == tenant), found[0])
    return await sessions.begin_session(
        databases,
        account.id,
        browser,
        pepper=pepper,
        confinement=Confinement.of_account(account.confined_to),
        password_changes=account.password_changes,
    )


async def note_refused_sign_in(databases: Databases, email: str, browser: Browser) -> None:
    """Record a refused sign-in, if the address has an account, in the log of each of the person's tenants.

    Call it after the answer was sent: its duration must not reveal whether there is an account.
    """
    try:
        email = normalized_email(email)
    except InvalidInput:
        return
    refused = acts.Act(Action.SESSION_REFUSED, browser.address, actor=UNKNOWN)
    for account in await list_accounts(databases, email):
        within = account.confined_to
        async with databases.personal(account.id, within=within) as session:
            await acts.record(session, account.id, refused, within=within)
        await acts.record_in_other_cells(databases, account.id, refused, within=within)


async def change_password(
    databases: Databases,
    signed_in: PersonSession,
    old: str,
    new: str,
    *,
    breached: BreachedPasswords | None = None,
    address: str | None = None,
) -> None:
    """Change the password, and end the person's other sessions. `address`: their address.

    Raises InvalidInput, also where it was changed while `old` was verified; Forbidden for a person who signed in by a
    tenant's provider, which does not prove that they know the password.
    """
    if signed_in.by_provider:
        raise Forbidden("You signed in through an organisation's provider. Sign in with your password to change it.")
    found = await _own_account(databases, signed_in)
    if found is None or not await passwords.matches(old, found.password_hash):
        raise _wrong_password("old_password")
    password_hash = await hash_new_password(databases, signed_in.email, signed_in.name, new, breached=breached)
    changed, within = acts.Act(Action.PASSWORD_CHANGED, address), signed_in.account_tenant
    async with databases.personal(signed_in.person_id, within=within) as session:
        if not await store.lock_password(session, signed_in.person_id, password_changes=found.password_changes):
            raise _wrong_password("old_password")
        await store.set_password(session, signed_in.person_id, password_hash)
        await store.revoke_other_sessions(session, signed_in.person_id, except_session=signed_in.id)
        await acts.record(session, signed_in.person_id, changed, within=within)
    if within is None:
        await acts.end_sessions_in_other_cells(databases, signed_in.person_id, changed)


async def require_own_password(databases: Databases, signed_in: PersonSession, password: str) -> int:
    """Raise InvalidInput unless this is the password of the person who is signed in, or they have none.

    Returns their number of password changes, for `require_same_password` in the transaction that needs the password.
    """
    found = await _own_account(databases, signed_in)
    if found is None or not (found.password_hash is None or await passwords.matches(password, found.password_hash)):
        raise _wrong_password("password")
    return found.password_changes


async def has_own_password(databases: Databases, signed_in: PersonSession) -> bool:
    """Whether the person who is signed in has a password."""
    found = await _own_account(databases, signed_in)
    return found is not None and found.password_hash is not None


async def require_same_password(session: Session, person_id: UUID, password_changes: int) -> None:
    """Raise InvalidInput where the password was changed since `password_changes`; otherwise lock it.

    `session`: the transaction that the password authorizes. Until it ends, the password cannot be changed.
    """
    if not await store.lock_password(session, person_id, password_changes=password_changes):
        raise _wrong_password("password")


def _wrong_password(path: str) -> InvalidInput:
    return InvalidInput("This is not your current password", path=path)


async def has_password(session: Session, email: str, person_id: UUID) -> bool:
    """Whether this person, with this address, has a password; `session`: in the cell of their account."""
    found = await store.find_credentials(session, email)
    of_tenants = await store.find_tenant_accounts(session, email, person_id=person_id, most=MAX_TENANT_ACCOUNTS)
    accounts = of_tenants if found is None else [found, *of_tenants]
    return any(account.id == person_id and account.password_hash is not None for account in accounts)


async def _own_account(databases: Databases, signed_in: PersonSession) -> Credentials | None:
    """The account of the person who is signed in; None where it is gone."""
    accounts = await list_accounts(databases, signed_in.email, person_id=signed_in.person_id)
    return next((account for account in accounts if account.id == signed_in.person_id), None)


async def list_memberships(
    databases: Databases, person_id: UUID, *, within: UUID | None, strict: bool = False
) -> list[Membership]:
    """The memberships of a person, by slug; for a session confined to one tenant (`within`) only that one.

    `strict`: raises Unavailable instead of returning an empty list while a cell is unreachable.
    """
    if within is None:
        memberships = await databases.list_from_all_cells(store.list_memberships, person_id=person_id, strict=strict)
        return sorted(memberships, key=lambda membership: membership.tenant)
    async with databases.personal(person_id, within=within) as session:
        memberships = await store.list_memberships(session)
        return [membership for membership in memberships if membership.tenant_id == within]


async def find_membership(
    databases: Databases, person_id: UUID, tenant: str, *, within: UUID | None
) -> Membership | None:
    """The membership of a person in the tenant of this slug, or None; `within` as in `list_memberships`.

    Raises Unavailable.
    """

    async def find(session: Session) -> Membership | None:
        memberships = await store.list_memberships(session)
        return next((membership for membership in memberships if membership.tenant == tenant), None)

    if within is None:
        return await databases.find_in_any_cell(f"member {tenant}", find, person_id=person_id, slug=tenant)
    async with databases.personal(person_id, within=within) as session:
        found = await find(session)
    return found if found is not None and found.tenant_id == within else None


async def copy_person(tx: Transaction, person_id: UUID, email: str, name: str) -> None:
    """Copy a person, without the password, to the cell of this tenant, so that its members can refer to them."""
    await store.act_as_person(tx, person_id)
    await store.copy_person(tx, person_id, email=email, name=name)


@asynccontextmanager
async def account_locked(databases: Databases, person_id: UUID) -> AsyncIterator[None]:
    """Prevent the deletion of a person's account while they become a member of a tenant in any cell.

    With a single cell, `lock_account_shared` does this. Raises Unauthenticated where the account is deleted.
    """
    if not databases.has_several_cells:
        yield
        return
    async with databases.several_connections, databases.home.personal(person_id) as home:
        await _hold(home, person_id)
        yield


async def lock_account_shared(tx: Transaction, person_id: UUID) -> None:
    """Prevent the deletion of a person's account until this transaction, at home, ends.

    Call it before changing rows that are deleted with the account. Raises Unauthenticated where that is deleted.
    """
    await store.act_as_person(tx, person_id)
    await _hold(tx, person_id)


async def _hold(home: Session, person_id: UUID) -> None:
    if not await store.lock_account_shared(home, person_id):
        raise Unauthenticated("This account no longer exists.")
