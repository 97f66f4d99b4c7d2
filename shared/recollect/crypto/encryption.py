"""Secrets that have to be read again: encrypted under keys that are derived from RECOLLECT_KEY_SECRET."""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from recollect.crypto.peppers import accepted_secrets_of

_NONCE_LENGTH = 12


@dataclass(frozen=True, slots=True)
class Cipher:
    """Encrypts for one purpose (AES-256-GCM). A ciphertext is bound to its owner, such as a row's id."""

    key: bytes = field(repr=False)
    others: "tuple[Cipher, ...]" = field(default=(), repr=False)

    @classmethod
    def of(cls, secret: bytes, *, purpose: str) -> "Cipher":
        """The cipher of this secret for a purpose; ciphers of other purposes cannot decrypt its ciphertexts.

        It also decrypts ciphertexts under the other accepted secrets.
        """
        others = tuple(cls.of(other, purpose=purpose) for other in accepted_secrets_of(secret))
        derive = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=f"recollect {purpose}".encode())
        return cls(derive.derive(secret), others)

    @property
    def fingerprint(self) -> bytes:
        """An identifier of the secret that reveals nothing about it."""
        return hashlib.sha256(b"recollect fingerprint" + self.key).digest()[:8]

    def encrypt(self, plain: bytes, *, bound_to: str) -> bytes:
        """The nonce, followed by the ciphertext."""
        nonce = os.urandom(_NONCE_LENGTH)
        return nonce + AESGCM(self.key).encrypt(nonce, plain, bound_to.encode())

    def decrypt(self, encrypted: bytes, *, bound_to: str) -> bytes:
        """The plaintext. Raises ValueError for a ciphertext of another secret or owner, or one that was changed."""
        nonce, ciphertext = encrypted[:_NONCE_LENGTH], encrypted[_NONCE_LENGTH:]
        for cipher in (self, *self.others):
            with suppress(InvalidTag):
                return AESGCM(cipher.key).decrypt(nonce, ciphertext, bound_to.encode())
        raise ValueError("it is not of this secret")
