"""Use cases of identity providers: a tenant sets them up; people sign in, join and connect by them.

A person who comes back from a provider is recognised by the subject, never by the address. A subject that is not known
yet joins as a new person of this tenant alone: by an invitation for the address that the provider verified, or because
the tenant owns the domain of that address. A person who is signed in with their own account connects the provider.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, changed_fields, named
from recollect.accounts.email_domains import service as email_domains
from recollect.accounts.identity_providers import store
from recollect.accounts.identity_providers.model import (
    MAX_PENDING,
    MAX_PROVIDERS,
    PURPOSE,
    SIGN_IN_LIFETIME,
    IdentityProvider,
    NewProvider,
    OfferedProvider,
    ProvenIdentity,
    ProviderChange,
    ProviderSession,
    Purpose,
    Registration,
    Returned,
    SignInRefused,
    SignInSecrets,
    check_fields,
    checked,
)
from recollect.accounts.identity_providers.relying_party import RelyingParty
from recollect.accounts.members import service as members
from recollect.accounts.people.model import PersonSession
from recollect.caller import Caller, Check, Role, unconditional
from recollect.cells.databases import Databases
from recollect.crypto.encryption import Cipher
from recollect.errors import Conflict, ErrorCode, NotFound
from recollect.ids import new_id
from recollect.outbound.txt_records import TextRecords
from recollect.postgres.tenant_database import TenantDatabase
from recollect.postgres.transactions import Transaction

SUBJECT = "sign-in"
"""The subject of the Caller that acts in a tenant while a person signs in."""

SIGN_IN_EXPIRED = "This sign-in has ended, or was begun in another browser. Go back to Recollect and begin again."
ACCOUNT_NOT_LINKED = (
    "Your account at this provider is not connected to Recollect yet. Open the link in your invitation and continue "
    "with your provider there. Or sign in with your password and connect the provider under “Account”."
)


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """An OAuth sign-in under way. `redirect_uri`: the address of ours to which the provider sends the browser back."""

    secrets: SignInSecrets
    redirect_uri: str


async def list_providers(tx: Transaction) -> list[IdentityProvider]:
    """The tenant's providers, by name."""
    return await store.list_providers(tx)


async def add_provider(tx: Transaction, new: NewProvider, *, pepper: bytes) -> IdentityProvider:
    """Set up a provider; its secret is stored encrypted and never returned.

    Raises InvalidInput; Forbidden if the caller may do less than an admin, since the provider may let admins in;
    Conflict if the tenant has a provider of the same issuer, or the most that it may have.
    """
    tx.caller.require_can_grant(Role.ADMIN)
    new = checked(new)
    await store.lock_providers(tx)
    if len(await store.list_providers(tx)) >= MAX_PROVIDERS:
        raise Conflict(
            f"A tenant can have at most {MAX_PROVIDERS} providers. Delete one first.", code=ErrorCode.TOO_MANY_PROVIDERS
        )
    provider_id = new_id()
    encrypted = _encrypted(tx, provider_id, new.client_secret, pepper)
    added = await store.insert_provider(tx, provider_id, new, encrypted=encrypted)
    if added is None:
        raise Conflict("There is already a provider with this issuer.", code=ErrorCode.PROVIDER_EXISTS, path="issuer")
    await audit.record(tx, Action.PROVIDER_CREATED, _named(provider_id))
    return added


async def change_provider(
    tx: Transaction,
    provider_id: UUID,
    change: ProviderChange,
    *,
    pepper: bytes,
    check: Check[IdentityProvider] = unconditional,
) -> IdentityProvider:
    """Change a provider. A disabled provider lets nobody in, and its sessions are not valid.

    Raises NotFound, InvalidInput, Forbidden as `add_provider` does, and as `check` does.
    """
    tx.caller.require_can_grant(Role.ADMIN)
    check_fields(change.name, change.client_id, change.client_secret, change.algorithm)
    secret = change.client_secret
    encrypted = None if secret is None else _encrypted(tx, provider_id, secret, pepper)
    before = await store.lock_provider(tx, provider_id)
    if before is None:
        raise _no_provider()
    check(before)
    changed = await store.change_provider(tx, provider_id, change, encrypted=encrypted)
    if changed is None:
        raise _no_provider()
    fields = changed_fields(before, changed) + (["client_secret"] if encrypted else [])
    if fields:
        await audit.record(tx, Action.PROVIDER_CHANGED, _named(provider_id), fields=fields)
    return changed


async def delete_provider(tx: Transaction, provider_id: UUID) -> None:
    """Delete a provider, with its identities; its sessions end. Raises NotFound."""
    if not await store.delete_provider(tx, provider_id):
        raise _no_provider()
    await audit.record(tx, Action.PROVIDER_DELETED, _named(provider_id))


async def offered(databases: Databases, slugs: Sequence[str]) -> list[OfferedProvider]:
    """The providers of these tenants, which need not exist, as a page offers them. Raises Unavailable."""
    if not slugs:
        return []
    return await databases.list_from_all_cells(lambda session: store.find_offered(session, slugs), slugs=slugs)


async def begin(
    db: TenantDatabase, party: RelyingParty, provider: OfferedProvider, purpose: Purpose, pending: PendingSignIn
) -> str:
    """Begin a sign-in; return the address to which to send the browser. Raises SignInRefused."""
    caller = _sign_in_caller(provider.tenant_id)
    async with db.transaction(caller, read_only=True) as tx:
        registration = await _registration(tx, provider.id, pending.secrets.pepper)
    url = await party.authorization_url(provider.tenant_id, registration, pending.secrets, pending.redirect_uri)
    async with db.transaction(caller) as tx:
        await store.insert_sign_in(tx, provider.id, pending.secrets, purpose, lifetime=SIGN_IN_LIFETIME)
        await store.forget_sign_ins(tx, max_stored=MAX_PENDING)
    return url


async def finish(
    databases: Databases,
    party: RelyingParty,
    records: TextRecords,
    provider_id: UUID,
    returned: Returned,
    pending: PendingSignIn,
    signed_in: PersonSession | None,
) -> ProviderSession:
    """Finish a sign-in, once; return the session of the person. Raises SignInRefused.

    `signed_in`: the session that this browser has already, which must be of the person who connects the provider.
    """
    state = pending.secrets.hash
    tenant_id = await databases.find_in_any_cell(
        state.hex(), lambda session: store.find_sign_in(session, state), stored_hashes=lambda: [state]
    )
    if tenant_id is None:
        raise SignInRefused(SIGN_IN_EXPIRED)
    db, caller = databases.of(tenant_id), _sign_in_caller(tenant_id)
    async with db.transaction(caller) as tx:
        purpose = await store.use_sign_in(tx, provider_id, pending.secrets)
        registration = await _registration(tx, provider_id, pending.secrets.pepper) if purpose else None
    if purpose is None or registration is None:
        raise SignInRefused(SIGN_IN_EXPIRED)
    if not returned.code or returned.issuer not in (None, registration.issuer):
        raise SignInRefused("Your identity provider did not sign you in.")
    identity = await party.identity(tenant_id, registration, pending.secrets, returned.code, pending.redirect_uri)
    role = await _role_by_domain(db, records, caller, provider_id, identity, purpose)
    async with db.transaction(caller) as tx:
        person_id = await _person(tx, provider_id, identity, purpose, signed_in, role)
    return ProviderSession(person_id, tenant_id, provider_id, purpose.return_to)


async def _role_by_domain(
    db: TenantDatabase,
    records: TextRecords,
    caller: Caller,
    provider_id: UUID,
    identity: ProvenIdentity,
    purpose: Purpose,
) -> Role | None:
    """The role in which an unknown person joins by the domain of the verified address; None if they do not."""
    if purpose.invitation_id is not None or purpose.person_id is not None:
        return None
    async with db.transaction(caller) as tx:
        if await store.find_identity(tx, provider_id, identity.subject) is not None:
            return None
    return await email_domains.role_for(db, records, caller, identity.email)


async def _person(
    tx: Transaction,
    provider_id: UUID,
    identity: ProvenIdentity,
    purpose: Purpose,
    signed_in: PersonSession | None,
    role: Role | None,
) -> UUID:
    """The person of this identity, created if necessary; `role`: in which they may join without an invitation.

    Raises SignInRefused."""
    known = await store.find_identity(tx, provider_id, identity.subject)
    if purpose.person_id is not None:
        return await _connect(tx, provider_id, identity, purpose.person_id, known, signed_in)
    if known is not None:
        return known
    if purpose.invitation_id is None and role is None:
        raise SignInRefused(ACCOUNT_NOT_LINKED)
    person_id = new_id()
    await store.act_as_person(tx, person_id)
    await store.insert_person(tx, person_id, identity)
    if purpose.invitation_id is not None:
        await members.accept_for(tx, purpose.invitation_id, person_id, identity.email)
    elif role is not None:
        await members.add_member(tx, person_id, role)
    if not await store.insert_identity(tx, provider_id, identity.subject, person_id):
        raise SignInRefused(SIGN_IN_EXPIRED)  # The same subject signed in by another browser just now.
    return person_id


async def _connect(
    tx: Transaction,
    provider_id: UUID,
    identity: ProvenIdentity,
    person_id: UUID,
    known: UUID | None,
    signed_in: PersonSession | None,
) -> UUID:
    """Connect this identity to the person who is signed in with their own account. Raises SignInRefused."""
    if signed_in is None or signed_in.person_id != person_id or signed_in.by_provider:
        raise SignInRefused("Sign in with your password first, in this browser, and then connect the provider.")
    if known == person_id:
        return person_id
    if known is not None or not await members.is_member(tx, person_id):
        raise SignInRefused("This account at the provider belongs to another member, or you are no longer a member.")
    if not await store.insert_identity(tx, provider_id, identity.subject, person_id):
        raise SignInRefused("You have already connected another account of this provider.")
    return person_id


async def _registration(tx: Transaction, provider_id: UUID, pepper: bytes) -> Registration:
    found = await store.find_registration(tx, provider_id)
    if found is None:
        raise SignInRefused("This provider can no longer be used to sign in.")
    try:
        secret = _cipher(pepper).decrypt(found.client_secret, bound_to=_row(tx, provider_id)).decode()
    except ValueError:  # The secret of the deployment has changed.
        raise SignInRefused(
            "The secret of this provider cannot be read. Ask an admin to set up the provider again."
        ) from None
    return Registration(found.id, found.issuer, found.client_id, secret, found.algorithm)


def _encrypted(tx: Transaction, provider_id: UUID, secret: str, pepper: bytes) -> bytes:
    return _cipher(pepper).encrypt(secret.encode(), bound_to=_row(tx, provider_id))


def _cipher(pepper: bytes) -> Cipher:
    return Cipher.of(pepper, purpose=PURPOSE)


def _row(tx: Transaction, provider_id: UUID) -> str:
    return f"{tx.tenant_id}/{provider_id}"


def _sign_in_caller(tenant_id: UUID) -> Caller:
    return Caller(tenant_id, tenant="", subject=SUBJECT, scopes=frozenset(), of_service=True)


def _named(provider_id: UUID) -> str:
    return named("identity_provider", provider_id)


def _no_provider() -> NotFound:
    return NotFound("There is no such identity provider.", code=ErrorCode.PROVIDER_NOT_FOUND)
