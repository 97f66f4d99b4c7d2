"""Use cases of a forgotten password: a link by which the password can be reset once.

The link goes by mail to the address, or an operator hands it to the person. So whoever uses it has proved that the
address is theirs, to Recollect or to the operator: an account that was of one tenant alone is so no more, unless the
address has another account that is of none. Whoever was in the account before is out: its passkeys, its connections to
identity providers and its sessions end.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from recollect.accounts.audit.model import Action
from recollect.accounts.identity.model import hash_secret
from recollect.accounts.people import acts, store
from recollect.accounts.people import service as people
from recollect.accounts.people.breached import BreachedPasswords
from recollect.accounts.people.model import Credentials, ProofOutcome, normalized_email
from recollect.accounts.people.store import ResetRecord
from recollect.cells.databases import Databases
from recollect.crypto.peppers import find_under_any_secret
from recollect.errors import NotFound
from recollect.ids import new_id
from recollect.outbound.mail import Email
from recollect.postgres.database import Database
from recollect.postgres.transactions import Session
from recollect.settings.cells import HOME

RESET_LIFETIME = timedelta(hours=1)
MAX_RESETS = 5
"""The most valid links of one person; one more ends the oldest."""

MAX_SECRET = 100
"""The most characters of a link's secret; longer text is refused."""


@dataclass(frozen=True, slots=True)
class OpenReset:
    """A valid link and its person; `confined_to`: the one tenant of which the account is, if any."""

    id: UUID
    person_id: UUID
    email: str
    name: str
    confined_to: UUID | None = None


async def find_accounts(databases: Databases, email: str, *, tenant: str | None = None) -> list[Credentials]:
    """The accounts of an address, as `people.list_accounts`. Raises InvalidInput for text that is no address."""
    return await people.list_accounts(databases, normalized_email(email), tenant=tenant)


async def find_account(db: Database, email: str) -> Credentials | None:
    """The account whose person proved this address, if any. Raises InvalidInput for text that is no address."""
    async with db.system() as session:
        return await store.find_credentials(session, normalized_email(email))


async def begin_reset(databases: Databases, person_id: UUID, *, pepper: bytes, within: UUID | None = None) -> str:
    """The secret of a link by which this person can reset the password; it is in the result and nowhere else.

    `within`: the one tenant of which the account is, if any.
    """
    secret = secrets.token_urlsafe(32)
    async with databases.personal(person_id, within=within) as session:
        await store.forget_resets(session, person_id, max_stored=MAX_RESETS - 1)
        await store.insert_reset(
            session, person_id, reset_id=new_id(), secret_hash=hash_secret(secret, pepper), lifetime=RESET_LIFETIME
        )
    return secret


async def open_reset(databases: Databases, secret: str, *, pepper: bytes) -> OpenReset:
    """The valid link of this secret. Raises NotFound, with one message for every reason why it is not valid."""
    record = None
    if secret and len(secret) <= MAX_SECRET:

        async def find(session: Session) -> ResetRecord | None:
            return await find_under_any_secret(
                pepper, lambda accepted: store.find_reset(session, hash_secret(secret, accepted))
            )

        record = await databases.find_in_any_cell(secret, find)
    if record is None or record.expires_at <= record.read_at:
        raise _void()
    return OpenReset(record.id, record.person_id, record.email, record.name, record.confined_to)


async def reset_password(
    databases: Databases,
    reset: OpenReset,
    password: str,
    *,
    breached: BreachedPasswords | None = None,
    address: str | None = None,
) -> None:
    """Set another password, and end all other ways to sign in, sessions and reset links. `address`: the person's.

    An account of one tenant becomes one of none, since its address is proven. Raises InvalidInput for a password that
    is refused, after which the link is still valid; NotFound where it was used before; TenantMoving where an
    organisation at whose provider the person signs in is between two cells.
    """
    password_hash = await people.hash_new_password(databases, reset.email, reset.name, password, breached=breached)
    changed = acts.Act(Action.PASSWORD_CHANGED, address)
    async with databases.personal(reset.person_id, within=reset.confined_to) as session:
        if not await store.use_reset(session, reset.person_id, reset.id):
            raise _void()
        await store.forget_resets(session, reset.person_id, max_stored=0)
        await store.set_password(session, reset.person_id, password_hash)
        await store.end_sign_ins(session)
        await acts.record(session, reset.person_id, changed, within=reset.confined_to)
    if reset.confined_to is None:
        await acts.end_sign_ins_in_other_cells(databases, reset.person_id, changed)
    else:
        await _prove_address(databases, reset, reset.confined_to, password_hash)


async def _prove_address(databases: Databases, reset: OpenReset, tenant_id: UUID, password_hash: str) -> None:
    """Make an account of one tenant one of none, at home, unless the address has such an account."""
    person_id = reset.person_id
    async with databases.home.personal(person_id) as home:
        outcome = await store.prove_address(home, as_copy=False)
        if outcome is ProofOutcome.UNKNOWN:  # It is in the cell of its tenant, where a copy of it stays.
            moved = await store.insert_person(
                home, person_id, email=reset.email, name=reset.name, password_hash=password_hash
            )
            outcome = ProofOutcome.PROVEN if moved else ProofOutcome.TAKEN
    if outcome is ProofOutcome.PROVEN and databases.known_cell(tenant_id) != HOME:
        async with databases.personal(person_id, within=tenant_id) as session:
            await store.prove_address(session, as_copy=True)


def reset_email(email: str, links: Mapping[str | None, str]) -> Email:
    """The mail with the link of each account, by the slug of the one tenant of which it is (None: of none)."""
    lines = [link if tenant is None else f"Of your account of {tenant}: {link}" for tenant, link in links.items()]
    return Email(
        to=email,
        subject="Choose a new password for Recollect",
        text=(
            "Somebody, probably you, asked for a new password for your account on Recollect.\n"
            "\n"
            "Open this link to choose one:\n"
            "\n" + "".join(f"{line}\n" for line in lines) + "\n"
            "The link works once and is valid for an hour. A new password ends all your sessions, removes your\n"
            "passkeys, and disconnects identity providers: the page lists them.\n"
            "If you did not ask for it, you can ignore this mail: your password stays as it is.\n"
        ),
    )


def _void() -> NotFound:
    return NotFound("This link is no longer valid. Ask for a new one at /forgot.")
