"""Limits of how many requests clients may make, by their address."""

import hashlib
from dataclasses import dataclass

from recollect.valkey.rate_limits.model import RateLimit


@dataclass(frozen=True, slots=True)
class AddressLimits:
    """The limits of clients by address. Their keys in Redis hold a keyed hash instead of the address."""

    secret: bytes

    def of(self, bucket: str, site: str, per_minute: int) -> RateLimit:
        """The limit of one client in a minute, for all requests that count in this bucket."""
        digest = hashlib.blake2b(site.encode(), key=self._key, digest_size=16).hexdigest()
        return RateLimit("address", f"recollect:rate:{{{bucket}:{digest}}}", per_minute)

    @property
    def _key(self) -> bytes:
        return hashlib.blake2b(self.secret, person=b"recollect site").digest()
