"""Identity providers, the identities of people there, and sign-ins in progress.

A provider can sign people in to its own tenant alone. The issuer and the subject together identify a person; an e-mail
address never does. A person who comes by a provider belongs to its tenant alone, unless they connected the provider to
an account that they had.
"""

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from recollect.accounts.people.model import MAX_NAME as MAX_PERSON_NAME
from recollect.accounts.people.model import normalized_email
from recollect.accounts.token_issuers import ALGORITHMS
from recollect.errors import ErrorCode, Forbidden, InvalidInput
from recollect.text.control_characters import controls, printable

PURPOSE = "identity providers"
"""The purpose for which the key that encrypts client secrets is derived."""

DEFAULT_ALGORITHM = "RS256"
MAX_PROVIDERS = 5
"""Providers of one tenant, at most."""

MAX_NAME = 200
MAX_ISSUER = 2_000
MAX_CLIENT_ID = 500
MAX_SECRET = 1_000
MAX_SUBJECT = 255
"""Characters of a subject, as OpenID Connect has them (Core, 2)."""

SIGN_IN_LIFETIME = timedelta(minutes=10)
"""The time that a person may take at their provider."""

MAX_PENDING = 1_000
"""Sign-ins in progress of one tenant, at most; one more ends the oldest."""

MAX_RETURNED = 4_000
"""Characters of a code or a state that a browser brings back, at most."""

_VISIBLE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    """A provider as it is listed, without its secret."""

    id: UUID
    name: str
    issuer: str
    client_id: str
    algorithm: str
    created_at: datetime
    created_by: str
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewProvider:
    """The fields of a new provider."""

    name: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    algorithm: str = DEFAULT_ALGORITHM


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """New values of fields; None leaves a field as it is."""

    name: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    algorithm: str | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class OfferedProvider:
    """A provider as a page offers it to people who have not signed in."""

    tenant_id: UUID
    tenant: str
    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class Registration:
    """Our registration as a client of a provider: our credentials there, and the algorithm of its tokens."""

    provider_id: UUID
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    algorithm: str


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a sign-in: to sign in and go on to `return_to`, a path of this server.

    `invitation_id`: the invitation by which to join, if necessary. `person_id`: the person who has signed in already
    and connects the provider.
    """

    return_to: str
    invitation_id: UUID | None = None
    person_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class SignInSecrets:
    """The secrets of a sign-in: the state, which passes through the provider, and the browser's cookie, which does not.

    All values that must not be guessed are derived from both and from the secret of the deployment, so stored values
    are of no use to an attacker.
    """

    state: str = field(repr=False)
    browser: str = field(repr=False)
    pepper: bytes = field(repr=False)

    @classmethod
    def new(cls, browser: str, pepper: bytes) -> "SignInSecrets":
        """The secrets of a new sign-in in this browser."""
        return cls(secrets.token_urlsafe(32), browser, pepper)

    @property
    def hash(self) -> bytes:
        """The hash by which the sign-in is found."""
        return self._derived(b"state", self.state)

    @property
    def browser_hash(self) -> bytes:
        """The hash by which its browser is recognised."""
        return self._derived(b"browser", self.browser)

    @property
    def nonce(self) -> str:
        """The nonce that the ID token must repeat."""
        return self._derived(b"nonce", self.state, self.browser).hex()

    @property
    def code_verifier(self) -> str:
        """The verifier to which the code is bound (RFC 7636): 43 characters."""
        return urlsafe_b64encode(self._derived(b"verifier", self.state, self.browser)).decode().rstrip("=")

    def _derived(self, purpose: bytes, *parts: str) -> bytes:
        text = b"\x00".join((b"sign-in", purpose, *(part.encode() for part in parts)))
        return hmac.digest(self.pepper, text, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class Returned:
    """Parameters that a browser brings back: a code, or none; and the issuer, if the provider names it (RFC 9207)."""

    code: str | None
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class ProvenIdentity:
    """A person's identity that their provider has proven: the subject identifies them, the rest describes them."""

    subject: str
    email: str
    name: str


@dataclass(frozen=True, slots=True)
class ProviderSession:
    """A person who has signed in by a provider, confined to one tenant. `return_to`: the path to go on to."""

    person_id: UUID
    tenant_id: UUID
    provider_id: UUID
    return_to: str


@dataclass(frozen=True, slots=True)
class OwnIdentity:
    """A person's identity at a provider of one of their tenants. `enabled`: whether they can sign in by it."""

    tenant_id: UUID
    tenant: str
    tenant_name: str
    provider_id: UUID
    provider_name: str
    enabled: bool
    last_used_at: datetime


class SignInRefused(Forbidden):
    """A person came back from a provider and is refused; the message is for them."""

    default_code = ErrorCode.SIGN_IN_REFUSED


def checked(new: NewProvider) -> NewProvider:
    """The new provider, if its fields are valid; raises InvalidInput."""
    check_fields(new.name, new.client_id, new.client_secret, new.algorithm)
    if not 1 <= len(new.issuer) <= MAX_ISSUER or "?" in new.issuer or "#" in new.issuer:
        raise InvalidInput(
            f"An issuer is an address of at most {MAX_ISSUER} characters, without ? and #", path="issuer"
        )
    return new


def check_fields(name: str | None, client_id: str | None, client_secret: str | None, algorithm: str | None) -> None:
    """Raise InvalidInput for a field that is not valid."""
    if name is not None and (not 1 <= len(name.strip()) <= MAX_NAME or controls(name)):
        raise InvalidInput(f"A name has 1 to {MAX_NAME} characters and no control characters", path="name")
    for path, value, longest in (
        ("client_id", client_id, MAX_CLIENT_ID),
        ("client_secret", client_secret, MAX_SECRET),
    ):
        if value is not None and (len(value) > longest or not _VISIBLE.fullmatch(value)):
            raise InvalidInput(f"Must have 1 to {longest} visible ASCII characters", path=path)
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise InvalidInput(f"Must be one of {', '.join(ALGORITHMS)}", path="algorithm")


def proven_identity(claims: dict[str, Any]) -> ProvenIdentity:
    """The identity in a verified ID token. Raises SignInRefused if a claim is missing."""
    subject, email = claims.get("sub"), claims.get("email")
    if not isinstance(subject, str) or not 1 <= len(subject) <= MAX_SUBJECT or controls(subject):
        raise SignInRefused("Your provider does not say who you are.")
    if claims.get("email_verified") is not True or not isinstance(email, str):
        raise SignInRefused("Your provider does not say that your e-mail address is verified.")
    try:
        email = normalized_email(email)
    except InvalidInput:
        raise SignInRefused("Your provider did not give your e-mail address.") from None
    name = claims.get("name")
    display_name = printable(name).strip()[:MAX_PERSON_NAME].strip() if isinstance(name, str) else ""
    return ProvenIdentity(subject, email, display_name or email.partition("@")[0])
