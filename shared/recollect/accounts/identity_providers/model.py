"""Identity providers, who somebody is at one, and sign-ins that are under way.

A provider speaks for its tenant alone. Who somebody is, its issuer and their subject there say together; an address
never says it. A person whom a provider brings is of its tenant, unless somebody who has an account connected it.
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
from recollect.errors import ErrorCode, Forbidden, InvalidInput
from recollect.platform.issuers import ALGORITHMS
from recollect.printable import controls, printable

PURPOSE = "identity providers"
"""What client secrets are encrypted for."""

DEFAULT_ALGORITHM = "RS256"
MAX_PROVIDERS = 5
"""Of one tenant."""

MAX_NAME = 200
MAX_ISSUER = 2_000
MAX_CLIENT_ID = 500
MAX_SECRET = 1_000
MAX_SUBJECT = 255
"""Characters of a subject, as OpenID Connect has them (Core, 2)."""

SIGN_IN_LIFETIME = timedelta(minutes=10)
"""How long somebody may take at their provider."""

MAX_UNDER_WAY = 1_000
"""Sign-ins of one tenant that are under way; one more ends the oldest."""

MAX_RETURNED = 4_000
"""Characters of a code or a state that comes back."""

_VISIBLE = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    """A provider as it is listed: never its secret."""

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
    """What is asked of a new provider."""

    name: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    algorithm: str = DEFAULT_ALGORITHM


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """What is to be different; None stays as it is."""

    name: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    algorithm: str | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class OfferedProvider:
    """A provider as a page offers it to who has not signed in."""

    tenant_id: UUID
    tenant: str
    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class Registration:
    """What we are at a provider: as whom we ask it, and what we believe of its tokens."""

    provider_id: UUID
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    algorithm: str


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a browser is sent to a provider for: to sign in and go on to a place of ours.

    `invitation_id`: to join by it, if there is need. `person_id`: whoever is signed in already connects the provider.
    """

    place: str
    invitation_id: UUID | None = None
    person_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class SignInSecrets:
    """What one sign-in is known by: the state, which goes by the provider, and the browser's cookie, which does not.

    All that must not be guessed follows from both and from the secret of the deployment: nothing stored is of use.
    """

    state: str = field(repr=False)
    browser: str = field(repr=False)
    pepper: bytes = field(repr=False)

    @classmethod
    def new(cls, browser: str, pepper: bytes) -> "SignInSecrets":
        """Those of a new sign-in in this browser."""
        return cls(secrets.token_urlsafe(32), browser, pepper)

    @property
    def hash(self) -> bytes:
        """By which the sign-in is found."""
        return self._derived(b"state", self.state)

    @property
    def browser_hash(self) -> bytes:
        """By which its browser is known."""
        return self._derived(b"browser", self.browser)

    @property
    def nonce(self) -> str:
        """What the ID token must repeat."""
        return self._derived(b"nonce", self.state, self.browser).hex()

    @property
    def code_verifier(self) -> str:
        """What the code is bound to (RFC 7636): 43 characters."""
        return urlsafe_b64encode(self._derived(b"verifier", self.state, self.browser)).decode().rstrip("=")

    def _derived(self, what: bytes, *parts: str) -> bytes:
        text = b"\x00".join((b"sign-in", what, *(part.encode() for part in parts)))
        return hmac.digest(self.pepper, text, hashlib.sha256)


@dataclass(frozen=True, slots=True)
class Returned:
    """What a browser brings back: a code, or none; and the issuer, where the provider names it (RFC 9207)."""

    code: str | None
    issuer: str | None = None


@dataclass(frozen=True, slots=True)
class ProvenIdentity:
    """Who somebody is, as their provider says and has proven: the subject counts, the rest describes."""

    subject: str
    email: str
    name: str


@dataclass(frozen=True, slots=True)
class ProviderSession:
    """Who has signed in by a provider, and how far that reaches: its tenant. `place`: where to go on to."""

    person_id: UUID
    tenant_id: UUID
    provider_id: UUID
    place: str


@dataclass(frozen=True, slots=True)
class OwnIdentity:
    """What a person is at a provider of one of their tenants. `enabled`: whether they can sign in by it."""

    tenant_id: UUID
    tenant: str
    tenant_name: str
    provider_id: UUID
    provider_name: str
    enabled: bool
    last_used_at: datetime


class SignInRefused(Forbidden):
    """Somebody came back from a provider, and is not let in; the message is for them."""

    default_code = ErrorCode.SIGN_IN_REFUSED


def checked(new: NewProvider) -> NewProvider:
    """What is asked of a provider, if it may be; raises InvalidInput."""
    check_fields(new.name, new.client_id, new.client_secret, new.algorithm)
    if not 1 <= len(new.issuer) <= MAX_ISSUER or "?" in new.issuer or "#" in new.issuer:
        raise InvalidInput(f"An address of {MAX_ISSUER} characters at most, without ? and #", path="issuer")
    return new


def check_fields(name: str | None, client_id: str | None, client_secret: str | None, algorithm: str | None) -> None:
    """Raise InvalidInput for what one of these may not be."""
    if name is not None and (not 1 <= len(name.strip()) <= MAX_NAME or controls(name)):
        raise InvalidInput(f"A name has 1 to {MAX_NAME} characters, none of them a control character", path="name")
    for path, value, longest in (
        ("client_id", client_id, MAX_CLIENT_ID),
        ("client_secret", client_secret, MAX_SECRET),
    ):
        if value is not None and (len(value) > longest or not _VISIBLE.fullmatch(value)):
            raise InvalidInput(f"1 to {longest} visible characters of ASCII", path=path)
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise InvalidInput(f"One of {', '.join(ALGORITHMS)}", path="algorithm")


def proven_identity(claims: dict[str, Any]) -> ProvenIdentity:
    """Who a verified ID token is about. Raises SignInRefused where it does not say enough."""
    subject, email = claims.get("sub"), claims.get("email")
    if not isinstance(subject, str) or not 1 <= len(subject) <= MAX_SUBJECT or controls(subject):
        raise SignInRefused("Your provider does not say who you are.")
    if claims.get("email_verified") is not True or not isinstance(email, str):
        raise SignInRefused("Your provider does not say that your e-mail address is verified.")
    try:
        email = normalized_email(email)
    except InvalidInput:
        raise SignInRefused("Your provider names no e-mail address of yours.") from None
    name = claims.get("name")
    told = printable(name).strip()[:MAX_PERSON_NAME].strip() if isinstance(name, str) else ""
    return ProvenIdentity(subject, email, told or email.partition("@")[0])
