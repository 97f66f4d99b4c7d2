"""API keys: their format, their stored form, and the Callers that they stand for.

A key reads `rcl_<kind>_<random><crc>`: people and secret scanners recognise it by the fixed prefix and the kind, and
the CRC-32 lets a mistyped or made-up key be refused without a query. The format follows GitHub's tokens:
https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
"""

import hashlib
import hmac
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.accounts.tenants.model import Tenant
from recollect.caller import OPERATOR, Caller, Scope
from recollect.errors import InvalidInput
from recollect.text.control_characters import controls

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH = 32
CRC_LENGTH = 6
MAX_NAME = 200
KIND_SCOPES = {
    "agent": frozenset({Scope.MEMORY_READ, Scope.MEMORY_WRITE}),
    "admin": frozenset(Scope),
}
"""The kinds of key, and the default scopes of each."""

WORKER = "worker"
"""The subject of work that the service does by itself. Keys have other subjects."""

_SECRET = re.compile(rf"rcl_([a-z]{{1,10}})_([0-9A-Za-z]{{{RANDOM_LENGTH}}})([0-9A-Za-z]{{{CRC_LENGTH}}})")


@dataclass(frozen=True, slots=True)
class NewKey:
    """The properties of a key to create.

    `graph_ids` and `toolsets` None allow all; `expires_at` None never expires. `requests_per_minute` None: as many as
    the tenant's plan allows to one key, which is also the upper limit.
    """

    name: str
    kind: str = "agent"
    scopes: frozenset[Scope] | None = None
    graph_ids: tuple[UUID, ...] | None = None
    default_graph_id: UUID | None = None
    expires_at: datetime | None = None
    toolsets: tuple[str, ...] | None = None
    requests_per_minute: int | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is listed: never its secret, only the hint by which people know it (`rcl_agent_…3fQa`)."""

    id: UUID
    name: str
    kind: str
    hint: str
    scopes: tuple[str, ...]
    graph_ids: tuple[UUID, ...] | None
    default_graph_id: UUID | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    toolsets: tuple[str, ...] | None
    requests_per_minute: int | None


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key at the one moment when its secret can be shown."""

    key: ApiKey
    secret: str


def key_name(name: str, *, path: str = "name") -> str:
    """A key's name without white space around it; raises InvalidInput at `path` for a name that is not allowed."""
    if not 1 <= len(name.strip()) <= MAX_NAME:
        raise InvalidInput(f"A key's name has 1 to {MAX_NAME} characters", path=path)
    if controls(name):
        raise InvalidInput("A key's name has no control characters, such as tabs or line breaks", path=path)
    return name.strip()


def alike(key: ApiKey) -> NewKey:
    """The properties of a new key that is like this one."""
    return NewKey(
        key.name,
        kind=key.kind,
        scopes=frozenset(Scope(scope) for scope in key.scopes),
        graph_ids=key.graph_ids,
        default_graph_id=key.default_graph_id,
        expires_at=key.expires_at,
        toolsets=key.toolsets,
        requests_per_minute=key.requests_per_minute,
    )


def generate_secret(kind: str) -> str:
    """A new secret of this kind, in the form of keys, with 190 random bits; other credentials use it, too."""
    body = "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return f"rcl_{kind}_{body}{_crc(kind, body)}"


def is_well_formed(secret: str) -> bool:
    """Whether a string could be a key: its shape and its checksum."""
    return kind_of(secret) in KIND_SCOPES


def kind_of(secret: str) -> str | None:
    """The kind that a secret names, if its form and its checksum are right."""
    match = _SECRET.fullmatch(secret)
    return match[1] if match is not None and match[3] == _crc(match[1], match[2]) else None


def hash_secret(secret: str, pepper: bytes) -> bytes:
    """The HMAC-SHA256 of a secret, 32 bytes: a leaked table is useless without the pepper.

    A slow hash would add nothing to 190 random bits.
    """
    return hmac.digest(pepper, secret.encode(), hashlib.sha256)


def fingerprint_of(pepper: bytes) -> bytes:
    """An identifier of the pepper that reveals nothing about it."""
    return hmac.digest(pepper, b"recollect fingerprint of keys", hashlib.sha256)[:8]


def hint_of(secret: str) -> str:
    """The part of a key that lists show."""
    return f"{secret[: secret.rindex('_') + 1]}…{secret[-4:]}"


def operator_caller(tenant: Tenant) -> Caller:
    """The Caller of an operator in a tenant: every scope, every graph."""
    return Caller(tenant.id, tenant.slug, OPERATOR, scopes=frozenset(Scope), of_service=True)


def worker_caller(tenant_id: UUID, subject: str = WORKER) -> Caller:
    """The Caller of the worker in a tenant, for its own work or in the name of the subject that requested it."""
    scopes = frozenset({Scope.MEMORY_READ, Scope.MEMORY_WRITE})
    return Caller(tenant_id, tenant="", subject=subject, scopes=scopes, of_service=subject == WORKER)


def _crc(kind: str, body: str) -> str:
    rest, digits = zlib.crc32(f"{kind}_{body}".encode()), ""
    for _ in range(CRC_LENGTH):
        rest, digit = divmod(rest, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
