"""Use cases of passkeys: add one, sign in by one, list, name and remove them.

Each ceremony begins with a challenge, which is stored for the browser that began it (`browser`: the keyed hash of its
cookie), and for the person who adds a passkey. The first response uses it up, before the response is verified.
"""

import secrets
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

import structlog
import webauthn
from webauthn.authentication.verify_authentication_response import VerifiedAuthentication
from webauthn.helpers import (
    options_to_json,
    parse_authentication_credential_json,
    parse_client_data_json,
    parse_registration_credential_json,
)
from webauthn.helpers.structs import (
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    RegistrationCredential,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)
from webauthn.registration.verify_registration_response import VerifiedRegistration

from recollect.accounts.passkeys import store
from recollect.accounts.passkeys.model import (
    CHALLENGE_LIFETIME,
    MAX_CREDENTIAL,
    MAX_PASSKEYS,
    Passkey,
    PasskeySite,
    StoredPasskey,
    passkey_name,
)
from recollect.accounts.people import service as people
from recollect.accounts.people.model import PersonSession
from recollect.cells.databases import Databases
from recollect.errors import Conflict, ErrorCode, Forbidden, InvalidInput, NotFound, Unauthenticated
from recollect.postgres.database import Database
from recollect.postgres.transactions import Session
from recollect.text.control_characters import printable

T = TypeVar("T")

REFUSAL = "This passkey was not accepted. Try again, or sign in with your password."
NOT_ADDED = "The passkey could not be added. Try again."
_CHALLENGE_BYTES = 32
_MILLISECONDS = int(CHALLENGE_LIFETIME.total_seconds() * 1000)

log = structlog.get_logger(__name__)


class _Refused(Exception):
    """The response of a browser cannot be read or accepted."""


def require_whole(person: PersonSession) -> None:
    """Raise Forbidden for a person who signed in by a tenant's provider, since a passkey opens the whole account."""
    if person.by_provider:
        raise Forbidden(
            "You signed in through an organisation's provider. To use passkeys, sign in another way, such as with "
            "your password."
        )


async def begin_adding(databases: Databases, person: PersonSession, browser: bytes, party: PasskeySite) -> str:
    """The options by which a browser makes a passkey, as JSON. Raises Forbidden as `require_whole` does."""
    require_whole(person)
    challenge = secrets.token_bytes(_CHALLENGE_BYTES)
    async with databases.personal(person.person_id, within=person.account_tenant) as session:
        await store.keep_challenge(session, challenge, browser, lifetime=CHALLENGE_LIFETIME)
        credential_ids = await store.list_credentials(session, person.person_id, limit=MAX_PASSKEYS)
    return options_to_json(
        webauthn.generate_registration_options(
            rp_id=party.id,
            rp_name="Recollect",
            user_id=person.person_id.bytes,
            user_name=person.email,
            user_display_name=person.name,
            challenge=challenge,
            timeout=_MILLISECONDS,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
            ),
            exclude_credentials=[PublicKeyCredentialDescriptor(id=id_) for id_ in credential_ids],
        )
    )


async def add(
    databases: Databases,
    person: PersonSession,
    browser: bytes,
    party: PasskeySite,
    *,
    name: str,
    credential: str,
    password_changes: int,
) -> Passkey:
    """Store the passkey that a browser made.

    `password_changes`: what `people.require_own_password` returned. Raises InvalidInput, also if the person has
    changed their password since; Conflict if it is registered already or they have MAX_PASSKEYS; Forbidden as
    `require_whole` does.
    """
    require_whole(person)
    name = passkey_name(name)
    try:
        response = _read(lambda: parse_registration_credential_json(_short(credential)))
        challenge = _challenge_of(response.response.client_data_json)
        async with databases.personal(person.person_id, within=person.account_tenant) as session:
            is_valid = await store.take_challenge(session, challenge, browser)
        registration = _read(lambda: _verified_registration(response, challenge, party)) if is_valid else None
    except _Refused:
        registration = None
    if registration is None:
        raise InvalidInput(NOT_ADDED)
    async with databases.personal(person.person_id, within=person.account_tenant) as session:
        # Its lock also makes a person add one passkey at a time.
        await people.require_same_password(session, person.person_id, password_changes)
        passkey = await store.insert_passkey(
            session,
            person.person_id,
            credential_id=registration.credential_id,
            public_key=registration.credential_public_key,
            sign_count=registration.sign_count,
            name=name,
            most=MAX_PASSKEYS,
        )
    if passkey is None:
        raise Conflict(
            f"This passkey is already registered, or you have {MAX_PASSKEYS} passkeys, which is the most.",
            code=ErrorCode.MEMBER_EXISTS,
        )
    return passkey


async def begin_sign_in(db: Database, browser: bytes, party: PasskeySite) -> str:
    """The options by which a browser signs in with a passkey that the person chooses, as JSON."""
    challenge = secrets.token_bytes(_CHALLENGE_BYTES)
    async with db.system() as session:
        await store.keep_challenge(session, challenge, browser, lifetime=CHALLENGE_LIFETIME)
    return options_to_json(
        webauthn.generate_authentication_options(
            rp_id=party.id,
            challenge=challenge,
            timeout=_MILLISECONDS,
            user_verification=UserVerificationRequirement.REQUIRED,
        )
    )


async def sign_in(databases: Databases, browser: bytes, party: PasskeySite, credential: str) -> StoredPasskey:
    """The passkey that signed, and so its person. Raises Unauthenticated, with one message for every reason."""
    try:
        response = _read(lambda: parse_authentication_credential_json(_short(credential)))
        challenge = _challenge_of(response.response.client_data_json)
        async with databases.home.system() as session:
            is_valid = await store.take_challenge(session, challenge, browser)
        raw_id = response.raw_id
        passkey = await databases.find_in_any_cell(raw_id.hex(), lambda session: store.find_passkey(session, raw_id))
        if not is_valid or passkey is None or response.response.user_handle != passkey.person_id.bytes:
            raise _Refused
        verified = _read(lambda: _verified_sign_in(response, challenge, party, passkey))
    except _Refused:
        raise Unauthenticated(REFUSAL) from None
    async with databases.personal(passkey.person_id, within=passkey.confined_to) as own:
        if not await store.note_use(own, passkey, sign_count=verified.new_sign_count):
            raise Unauthenticated(REFUSAL)
    return passkey


async def list_passkeys(databases: Databases, person_id: UUID, *, within: UUID | None = None) -> list[Passkey]:
    """A person's passkeys, oldest first; `within`: the one tenant of which the account is, if any."""
    async with databases.personal(person_id, within=within) as session:
        return await store.list_passkeys(session, person_id, limit=MAX_PASSKEYS)


async def has_any(session: Session, person_id: UUID) -> bool:
    """Whether a person who has signed in has a passkey."""
    return bool(await store.list_passkeys(session, person_id, limit=1))


async def rename(databases: Databases, person: PersonSession, passkey_id: UUID, name: str) -> None:
    """Give a passkey another name. Raises InvalidInput, NotFound, or Forbidden as `require_whole` does."""
    require_whole(person)
    name = passkey_name(name)
    async with databases.personal(person.person_id, within=person.account_tenant) as session:
        if not await store.rename_passkey(session, person.person_id, passkey_id, name):
            raise NotFound("There is no such passkey.")


async def remove(session: Session, person_id: UUID, passkey_id: UUID) -> None:
    """Delete a passkey. Raises NotFound."""
    if not await store.delete_passkey(session, person_id, passkey_id):
        raise NotFound("There is no such passkey.")


def _verified_registration(
    response: RegistrationCredential, challenge: bytes, party: PasskeySite
) -> VerifiedRegistration:
    return webauthn.verify_registration_response(
        credential=response,
        expected_challenge=challenge,
        expected_rp_id=party.id,
        expected_origin=party.origin,
        require_user_verification=True,
    )


def _verified_sign_in(
    response: AuthenticationCredential, challenge: bytes, party: PasskeySite, passkey: StoredPasskey
) -> VerifiedAuthentication:
    return webauthn.verify_authentication_response(
        credential=response,
        expected_challenge=challenge,
        expected_rp_id=party.id,
        expected_origin=party.origin,
        credential_public_key=passkey.public_key,
        credential_current_sign_count=passkey.sign_count,
        require_user_verification=True,
    )


def _challenge_of(client_data: bytes) -> bytes:
    return _read(lambda: parse_client_data_json(client_data)).challenge


def _short(credential: str) -> str:
    if len(credential) > MAX_CREDENTIAL:
        raise _Refused
    return credential


def _read(read: Callable[[], T]) -> T:
    """The result of a call to the library; raises _Refused for a response that it cannot read or does not accept.

    It reads CBOR, keys and certificates from strangers, and some of its exceptions come from other libraries.
    """
    try:
        return read()
    except Exception as error:
        log.info("passkey rejected", reason=printable(f"{type(error).__name__}: {error}"[:200]))
        raise _Refused from None
