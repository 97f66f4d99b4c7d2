"""Secrets that have to be read again: encrypted under keys that are derived from RECOLLECT_KEY_SECRET."""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from recollect.peppers import others_of

_NONCE_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Cipher:
    """Encrypts for one purpose (AES-256-GCM). What is encrypted is bound to what it is of, and opens nowhere else."""

    key: bytes = field(repr=False)
    others: "tuple[Cipher, ...]" = field(default=(), repr=False)

    @classmethod
    def of(cls, secret: bytes, *, purpose: str) -> "Cipher":
        """The cipher of this secret for a purpose; that of another purpose opens nothing of it.

        It also opens what was encrypted under a secret that is accepted beside this one.
        """
        others = tuple(cls.of(other, purpose=purpose) for other in others_of(secret))
        derive = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=f"recollect {purpose}".encode())
        return cls(derive.derive(secret), others)

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
        nonce, text = encrypted[:_NONCE_LENGTH], encrypted[_NONCE_LENGTH:]
        for cipher in (self, *self.others):
            with suppress(InvalidTag):
                return AESGCM(cipher.key).decrypt(nonce, text, bound_to.encode())
        raise ValueError("it is not of this secret")
