"""An authenticator in software: what a browser and a device do together when a passkey is created or used.

Tests can set each of its values, also to wrong ones.
"""

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass, field, replace
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

USER_PRESENT, USER_VERIFIED, ATTESTED = 0x01, 0x04, 0x40


@dataclass(frozen=True)
class Authenticator:
    """One credential and its device. `origin` is the page that asks, as the browser sees it; `host` None is its own."""

    origin: str
    host: str | None = None
    verifies: bool = True
    counts: bool = True
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    count: int = 0
    user_handle: bytes = b""

    def make(self, options: dict[str, Any]) -> tuple["Authenticator", str]:
        """Create a passkey for these options: the authenticator that has it, and the answer of the browser."""
        numbers = self.key.public_key().public_numbers()
        x, y = (number.to_bytes(32, "big") for number in (numbers.x, numbers.y))
        public_key = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})
        length = len(self.credential_id).to_bytes(2, "big")
        attested = self._data(ATTESTED, self.count) + bytes(16) + length + self.credential_id + public_key
        response = {
            "clientDataJSON": text(self._client_data("webauthn.create", options)),
            "attestationObject": text(cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": attested})),
        }
        return replace(self, user_handle=bytes_of(options["user"]["id"])), self._answer(response)

    def sign(self, options: dict[str, Any], *, count: int | None = None) -> str:
        """The browser's answer to a request for a signature; `count` is the signature counter of the device."""
        client_data = self._client_data("webauthn.get", options)
        data = self._data(0, self.count + 1 if count is None else count)
        signature = self.key.sign(data + hashlib.sha256(client_data).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            {
                "clientDataJSON": text(client_data),
                "authenticatorData": text(data),
                "signature": text(signature),
                "userHandle": text(self.user_handle),
            }
        )

    def _data(self, flags: int, count: int) -> bytes:
        host = self.host or self.origin.split("//")[1].split(":")[0]
        flags |= USER_PRESENT | (USER_VERIFIED if self.verifies else 0)
        return hashlib.sha256(host.encode()).digest() + bytes([flags]) + count.to_bytes(4, "big")

    def _client_data(self, what: str, options: dict[str, Any]) -> bytes:
        said = {"type": what, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": False}
        return json.dumps(said).encode()

    def _answer(self, response: dict[str, str]) -> str:
        id_ = text(self.credential_id)
        return json.dumps({"id": id_, "rawId": id_, "type": "public-key", "response": response})


def text(data: bytes) -> str:
    """Bytes as browsers encode them."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def bytes_of(written: str) -> bytes:
    """Decode bytes that a browser encoded."""
    return urlsafe_b64decode(written + "=" * (-len(written) % 4))
