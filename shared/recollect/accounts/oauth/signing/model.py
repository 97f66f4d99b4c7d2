"""Signing keys (ES256), and how their private part is kept: encrypted under a key derived from RECOLLECT_KEY_SECRET."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec
from joserfc.jwk import ECKey

from recollect.platform.encryption import Cipher

ALGORITHM = "ES256"
ROTATED_AFTER = timedelta(days=30)
"""The database adds no key while there is one that is younger (migration 0024)."""

PUBLISHED_BEFORE_USE = timedelta(minutes=5)
"""So long is a new key published before it signs, where there is an older one: verifiers remember what they read."""

ID_TOKEN_LIFETIME = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A signing key as it is stored. `fingerprint`: of the secret that the private part is encrypted under."""

    id: str
    fingerprint: bytes
    public_key: dict[str, Any]
    private_key: bytes = field(repr=False)
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Vault:
    """Encrypts and decrypts private parts; made of the secret that keys are hashed with."""

    cipher: Cipher

    @classmethod
    def of(cls, secret: bytes) -> "Vault":
        """The vault of this secret."""
        return cls(Cipher.of(secret, purpose="signing keys"))

    @property
    def fingerprint(self) -> bytes:
        """Which secret it is, without telling anything of it."""
        return self.cipher.fingerprint

    @property
    def fingerprints(self) -> frozenset[bytes]:
        """Those of all secrets of which it opens keys."""
        return frozenset(cipher.fingerprint for cipher in (self.cipher, *self.cipher.others))

    def new_key(self) -> StoredKey:
        """A new signing key, to be stored."""
        made = ECKey.generate_key("P-256", private=True)
        key_id = made.thumbprint()
        encrypted = self.cipher.encrypt(msgspec.json.encode(made.as_dict(private=True)), bound_to=key_id)
        public = {**made.as_dict(private=False), "kid": key_id, "use": "sig", "alg": ALGORITHM}
        return StoredKey(key_id, self.fingerprint, public, encrypted, datetime.min)

    def open(self, stored: StoredKey) -> ECKey:
        """The key with its private part. Raises ValueError for one of another secret, or that was tampered with."""
        try:
            private = self.cipher.decrypt(stored.private_key, bound_to=stored.id)
        except ValueError:
            raise ValueError(f"the signing key {stored.id} is not of this secret") from None
        return ECKey.import_key(msgspec.json.decode(private))
