"""API keys: their format, what is stored of them, and the Callers that they become.

A key reads `rcl_<kind>_<random><crc>`: the kind and a fixed prefix let people and secret scanners recognise it, the
CRC-32 lets a mistyped or made-up key be refused without asking the database. Format after GitHub's tokens:
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
from recollect.printable import controls

ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH = 32
CRC_LENGTH = 6
MAX_NAME = 200
KIND_SCOPES = {
    "agent": frozenset({Scope.MEMORY_READ, Scope.MEMORY_WRITE}),
    "admin": frozenset(Scope),
}
"""The kinds of key, and the scopes that each has unless others are asked for."""

WORKER = "worker"
"""The subject of what the service does of its own accord. Keys have others."""

_SECRET = re.compile(rf"rcl_([a-z]{{1,10}})_([0-9A-Za-z]{{{RANDOM_LENGTH}}})([0-9A-Za-z]{{{CRC_LENGTH}}})")


@dataclass(frozen=True, slots=True)
class NewKey:
    """What is asked of a new key.

    `graph_ids` and `toolsets` None allow all; `expires_at` None never expires. `requests_per_minute` None: as many as
    the tenant's plan gives to one key, and never more.
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
    """The name, if a key may be called so, without white space around it; raises InvalidInput at `path`."""
    if not 1 <= len(name.strip()) <= MAX_NAME:
        raise InvalidInput(f"A key's name has 1 to {MAX_NAME} characters", path=path)
    if controls(name):
        raise InvalidInput("A key's name has no control characters, such as tabs or ends of lines", path=path)
    return name.strip()


def alike(key: ApiKey) -> NewKey:
    """What is asked of a new key that is to do what another one does."""
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
    """A new secret of that kind, of keys or of what else has their form, with 190 random bits."""
    body = "".join(secrets.choice(ALPHABET) for _ in range(RANDOM_LENGTH))
    return f"rcl_{kind}_{body}{_crc(kind, body)}"


def is_well_formed(secret: str) -> bool:
    """Whether a string could be a key: its shape and its checksum."""
    return kind_of(secret) in KIND_SCOPES


def kind_of(secret: str) -> str | None:
    """The kind that a secret names, if it has the shape and the checksum of one."""
    match = _SECRET.fullmatch(secret)
    return match[1] if match is not None and match[3] == _crc(match[1], match[2]) else None


def hash_secret(secret: str, pepper: bytes) -> bytes:
    """HMAC-SHA256, 32 bytes: a leaked table is of no use without the pepper.

    A slow hash would add nothing to 190 random bits.
    """
    return hmac.digest(pepper, secret.encode(), hashlib.sha256)


def fingerprint_of(pepper: bytes) -> bytes:
    """Which secret keys are hashed with, without telling anything of it."""
    return hmac.digest(pepper, b"recollect fingerprint of keys", hashlib.sha256)[:8]


def hint_of(secret: str) -> str:
    """What is shown of a key in lists."""
    return f"{secret[: secret.rindex('_') + 1]}…{secret[-4:]}"


def operator_caller(tenant: Tenant) -> Caller:
    """An operator at work for a tenant: every scope, every graph."""
    return Caller(tenant.id, tenant.slug, OPERATOR, scopes=frozenset(Scope), of_service=True)


def worker_caller(tenant_id: UUID, subject: str = WORKER) -> Caller:
    """The worker at work for a tenant, of its own accord or in the name of whoever asked for it."""
    scopes = frozenset({Scope.MEMORY_READ, Scope.MEMORY_WRITE})
    return Caller(tenant_id, tenant="", subject=subject, scopes=scopes, of_service=subject == WORKER)


def _crc(kind: str, body: str) -> str:
    rest, digits = zlib.crc32(f"{kind}_{body}".encode()), ""
    for _ in range(CRC_LENGTH):
        rest, digit = divmod(rest, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits
