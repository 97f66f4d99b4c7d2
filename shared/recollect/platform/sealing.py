"""Secrets that are stored and read again: encrypted under a key derived from RECOLLECT_KEY_SECRET."""

import hashlib
import os
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_NONCE_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Sealer:
    """Encrypts and decrypts for one purpose (AES-256-GCM): what was sealed for another one does not open."""

    key: bytes = field(repr=False)

    @classmethod
    def of(cls, secret: bytes, purpose: str) -> "Sealer":
        """That of this secret and this purpose."""
        return cls(HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=purpose.encode()).derive(secret))

    @property
    def fingerprint(self) -> bytes:
        """Which secret it is, without telling anything of it."""
        return hashlib.sha256(b"recollect fingerprint" + self.key).digest()[:8]

    def seal(self, plain: bytes, belongs_to: str) -> bytes:
        """The text encrypted. It opens only as what `belongs_to` the same: no row's can be put into another one."""
        nonce = os.urandom(_NONCE_LENGTH)
        return nonce + AESGCM(self.key).encrypt(nonce, plain, belongs_to.encode())

    def open(self, sealed: bytes, belongs_to: str) -> bytes:
        """The text again. Raises ValueError where it is of another secret or place, or was tampered with."""
        nonce, encrypted = sealed[:_NONCE_LENGTH], sealed[_NONCE_LENGTH:]
        try:
            return AESGCM(self.key).decrypt(nonce, encrypted, belongs_to.encode())
        except (InvalidTag, ValueError):
            raise ValueError(f"what is sealed for {belongs_to} is not of this secret") from None
