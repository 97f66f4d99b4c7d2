"""Requests with idempotency keys (stored as hashes), and their answers (stored encrypted)."""

import hashlib
import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from recollect.caller import Caller
from recollect.errors import InvalidInput

HEADER = "Idempotency-Key"
"""The header that holds the key of a request (draft-ietf-httpapi-idempotency-key-header)."""

ANSWER_RETENTION = timedelta(hours=24)
"""How long a key is stored, and so how long a repeated request is recognised."""

ANSWER_AWAITED = timedelta(minutes=1)
"""How long after its act an answer may still be in progress; later it counts as lost."""

MAX_KEY = 255
"""Characters of a key."""

MAX_KEYS = 10_000
"""Keys that a tenant may have at a time, at most."""

MAX_KEYS_OF_SENDER = 2_500
"""Keys that one credential may have at a time, at most: one alone does not use up those of its tenant."""

MAX_ANSWER_BYTES = 64 * 1024
"""Bytes of an answer that is stored, at most."""

MAX_STORED_BYTES = 64 * 1024 * 1024
"""Bytes of all answers of a tenant that are stored at a time, at most, encrypted. Further ones are not stored, until
others expire: the acts are done, and their keys are stored."""

MAX_STORED_BYTES_OF_SENDER = MAX_STORED_BYTES // 4
"""Bytes of all answers to one credential that are stored at a time, at most."""

NOT_SAVED = b""
"""Stored in place of an answer that is too large, has no room, must not be stored, or was deleted by an erasure."""

_NONCE_LENGTH = 12


class SavedAnswer(msgspec.Struct, frozen=True):
    """An answer as it is repeated: the status, the headers that describe the body, and the body."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """A request with a key. Each hash has 32 bytes and reveals nothing without the service's secret.

    `key`: hash of the key, its tenant and its sender; `content`: of the request; `rights`: of the sender's rights;
    `sender`: of the credential and its tenant.
    """

    key: bytes
    content: bytes
    rights: bytes
    sender: bytes

    @classmethod
    def of(
        cls, caller: Caller, key: str, method: str, target: str, body: bytes, *, pepper: bytes
    ) -> "IdempotentRequest":
        """The request of this caller. `target`: path and query."""
        sender = str(caller.tenant_id).encode(), caller.subject.encode()
        return cls(
            _hash(pepper, b"key", [*sender, key.encode()]),
            _hash(pepper, b"content", [*sender, method.encode(), target.encode(), body]),
            _hash(pepper, b"rights", [*sender, *_rights(caller)]),
            _hash(pepper, b"sender", [*sender]),
        )

    @property
    def lock(self) -> int:
        """The number that is locked while the request is under way."""
        return int.from_bytes(self.key[:8], "big", signed=True)


@dataclass(frozen=True, slots=True)
class AnswerVault:
    """Encrypts answers: some hold secrets that are shown once."""

    key: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes) -> "AnswerVault":
        """The vault of this secret."""
        return cls(HKDF(hashes.SHA256(), length=32, salt=None, info=b"recollect idempotent answers").derive(secret))

    def close(self, answer: SavedAnswer, tenant_id: UUID, request: IdempotentRequest) -> bytes:
        """The answer, encrypted for this request of this tenant."""
        nonce = os.urandom(_NONCE_LENGTH)
        return nonce + AESGCM(self.key).encrypt(nonce, msgspec.msgpack.encode(answer), tenant_id.bytes + request.key)

    def open(self, stored: bytes, tenant_id: UUID, request: IdempotentRequest) -> SavedAnswer | None:
        """The answer; None if it belongs to another request, or was stored under another secret."""
        nonce, encrypted = stored[:_NONCE_LENGTH], stored[_NONCE_LENGTH:]
        try:
            decrypted = AESGCM(self.key).decrypt(nonce, encrypted, tenant_id.bytes + request.key)
        except InvalidTag:
            return None
        return msgspec.msgpack.decode(decrypted, type=SavedAnswer)


def idempotency_key(header: str) -> str:
    """The key in a header, plain or as a string of structured fields (in quotes). Raises InvalidInput."""
    key = header[1:-1] if len(header) > 1 and header[0] == header[-1] == '"' else header
    if not 1 <= len(key) <= MAX_KEY or not (key.isascii() and key.isprintable()):
        raise InvalidInput(f"A key has 1 to {MAX_KEY} printable ASCII characters", path="Idempotency-Key")
    return key


def _rights(caller: Caller) -> list[bytes]:
    def joined(values: Iterable[object] | None) -> bytes:
        return b"*" if values is None else ",".join(sorted(map(str, values))).encode()

    return [str(caller.role).encode(), joined(caller.scopes), joined(caller.graphs), joined(caller.toolsets)]


def _hash(pepper: bytes, purpose: bytes, parts: list[bytes]) -> bytes:
    """A keyed hash of parts, each with its length before it, so that the hash depends on where one ends."""
    hashed = hmac.new(pepper, b"recollect idempotency " + purpose, hashlib.sha256)
    for part in parts:
        hashed.update(len(part).to_bytes(8, "big") + part)
    return hashed.digest()
