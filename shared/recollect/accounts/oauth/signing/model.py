"""Signing keys (ES256). Their private part is stored encrypted, under a key derived from RECOLLECT_KEY_SECRET."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
from joserfc.jwk import ECKey

from recollect.crypto.encryption import Cipher

ALGORITHM = "ES256"
ROTATED_AFTER = timedelta(days=30)
"""Age at which a key is replaced. The database adds no key while there is a younger one (`add_signing_key`)."""

PUBLISHED_BEFORE_USE = timedelta(minutes=5)
"""How long a new key is published before it signs, if there is an older one: verifiers cache keys."""

ID_TOKEN_LIFETIME = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A signing key as it is stored. `fingerprint`: of the secret under which the private part is encrypted.

    `read_at`: when it was read, by the clock of the database, which set `created_at`.
    """

    id: str
    fingerprint: bytes
    public_key: dict[str, Any]
    private_key: bytes = field(repr=False)
    created_at: datetime
    read_at: datetime

    def is_older_than(self, age: timedelta) -> bool:
        """Whether it was made longer ago than this."""
        return self.read_at - self.created_at > age


@dataclass(frozen=True, slots=True)
class Vault:
    """Encrypts and decrypts private parts, under the secret with which API keys are hashed."""

    cipher: Cipher

    @classmethod
    def of(cls, secret: bytes) -> "Vault":
        """The vault of this secret."""
        return cls(Cipher.of(secret, purpose="signing keys"))

    @property
    def fingerprint(self) -> bytes:
        """The fingerprint of the secret, which reveals nothing of it."""
        return self.cipher.fingerprint

    @property
    def fingerprints(self) -> frozenset[bytes]:
        """The fingerprints of all secrets whose keys it can decrypt."""
        return frozenset(cipher.fingerprint for cipher in (self.cipher, *self.cipher.others))

    def new_key(self) -> StoredKey:
        """A new signing key, to be stored."""
        key = ECKey.generate_key("P-256", private=True)
        key_id = key.thumbprint()
        encrypted = self.cipher.encrypt(msgspec.json.encode(key.as_dict(private=True)), bound_to=key_id)
        public = {**key.as_dict(private=False), "kid": key_id, "use": "sig", "alg": ALGORITHM}
        return StoredKey(key_id, self.fingerprint, public, encrypted, datetime.min, datetime.min)

    def open(self, stored: StoredKey) -> ECKey:
        """The key with its private part. Raises ValueError for a key of another secret, or that was tampered with."""
        try:
            private = self.cipher.decrypt(stored.private_key, bound_to=stored.id)
        except ValueError:
            raise ValueError(f"the signing key {stored.id} is not of this secret") from None
        return ECKey.import_key(msgspec.json.decode(private))
