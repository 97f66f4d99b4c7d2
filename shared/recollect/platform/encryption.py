"""Secrets that have to be read again: encrypted under keys that are derived from RECOLLECT_KEY_SECRET."""

import hashlib
import os
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_NONCE_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Cipher:
    """Encrypts for one purpose (AES-256-GCM). What is encrypted is bound to what it is of, and opens nowhere else."""

    key: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes, *, purpose: str) -> "Cipher":
        """The cipher of this secret for a purpose; that of another purpose opens nothing of it."""
        derive = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=f"recollect {purpose}".encode())
        return cls(derive.derive(secret))

    @property
    def fingerprint(self) -> bytes:
        """Which secret it is, without telling anything of it."""
        return hashlib.sha256(b"recollect fingerprint" + self.key).digest()[:8]

    def encrypt(self, plain: bytes, *, bound_to: str) -> bytes:
        """The nonce, and what it encrypts to."""
        nonce = os.urandom(_NONCE_LENGTH)
        return nonce + AESGCM(self.key).encrypt(nonce, plain, bound_to.encode())

    def decrypt(self, encrypted: bytes, *, bound_to: str) -> bytes:
        """What was encrypted. Raises ValueError for what is of another secret or thing, or was tampered with."""
        try:
            return AESGCM(self.key).decrypt(encrypted[:_NONCE_LENGTH], encrypted[_NONCE_LENGTH:], bound_to.encode())
        except InvalidTag:
            raise ValueError("it is not of this secret") from None
