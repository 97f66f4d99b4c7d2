"""Small values that gateways share through Redis, for a while.

Nothing depends on it: a value that is missing, does not come in time or is not one of this server's is a miss.
Values are sealed: who can write to Redis, but does not have the secret, can neither forge a value nor move one
to another key. Names of keys are keyed hashes, so that who can read Redis cannot guess which questions were
asked.
"""

import asyncio
import hashlib
import hmac
import time
from collections.abc import Sequence
from uuid import UUID

import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

MAX_BYTES = 64 * 1024
"""Longest sealed value, in bytes; longer ones are not stored, and never read beyond this length."""

REST_SECONDS = 1.0
"""How long Redis is not asked after it did not answer in time."""

_VERSION = b"\x01"
_SEAL_BYTES = 16
_MOST_PENDING = 256
_WRITE_SECONDS = 1.0

log = structlog.get_logger(__name__)


class SharedCache:
    """Values by key, in a group for each tenant: at most `max_entries` a group, each for `ttl_seconds`."""

    def __init__(
        self, redis: Redis, name: str, *, secret: bytes, max_entries: int, ttl_seconds: int, wait_seconds: float
    ) -> None:
        self.max_entries = max_entries
        self.ttl_seconds = ttl_seconds
        self._redis = redis
        self._name = name
        self._secret = hashlib.blake2b(secret, person=b"recollect cache").digest()
        self._wait_seconds = wait_seconds
        self._rests_until = 0.0
        self._pending: set[asyncio.Task[None]] = set()

    async def get(self, tenant_id: UUID, materials: Sequence[bytes]) -> list[bytes | None]:
        """The value of each key, in one round trip; None where there is none. Keys are derived from `materials`.

        Takes `wait_seconds` at most. Never call it inside a database transaction.
        """
        keys = [self._key(tenant_id, material) for material in materials]
        if not keys or time.monotonic() < self._rests_until:
            return [None] * len(keys)
        try:
            async with asyncio.timeout(self._wait_seconds), self._redis.pipeline(transaction=False) as pipe:
                for key in keys:
                    pipe.getrange(key, 0, MAX_BYTES)
                values = await pipe.execute(raise_on_error=False)
        except (RedisError, OSError, TimeoutError) as error:
            self._note_failure(error)
            return [None] * len(keys)
        return [self._unseal(key, value) for key, value in zip(keys, values, strict=True)]

    def put(self, tenant_id: UUID, material: bytes, value: bytes) -> None:
        """Store a value in the background: returns at once and never raises."""
        key = self._key(tenant_id, material)
        sealed = _VERSION + self._seal(key, value) + value
        is_resting = time.monotonic() < self._rests_until
        if is_resting or len(sealed) > MAX_BYTES or len(self._pending) >= _MOST_PENDING:
            return
        task = asyncio.create_task(self._write(tenant_id, key, sealed))
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)

    async def size(self, tenant_id: UUID) -> int:
        """How many values the tenant has now; 0 while Redis is unreachable."""
        try:
            async with asyncio.timeout(self._wait_seconds):
                return int(await self._redis.zcount(self._index(tenant_id), time.time(), "+inf"))
        except (RedisError, OSError, TimeoutError):
            return 0

    async def settle(self) -> None:
        """Wait for pending writes, each of which takes a second at most."""
        await asyncio.gather(*self._pending)

    async def _write(self, tenant_id: UUID, key: str, sealed: bytes) -> None:
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                await self._drop(tenant_id, await self._insert(tenant_id, key, sealed))
        except (RedisError, OSError, TimeoutError) as error:
            self._note_failure(error)

    async def _insert(self, tenant_id: UUID, key: str, sealed: bytes) -> list[bytes]:
        """Store the value and when it expires; return the keys beyond `max_entries`, the first to expire."""
        index, now = self._index(tenant_id), time.time()
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.set(key, sealed, ex=self.ttl_seconds)
            pipe.zremrangebyscore(index, "-inf", now)
            pipe.zadd(index, {key: now + self.ttl_seconds})
            pipe.expire(index, self.ttl_seconds)
            pipe.zrange(index, 0, -1 - self.max_entries)
            *_, excess = await pipe.execute()
        return list(excess)

    async def _drop(self, tenant_id: UUID, keys: Sequence[bytes]) -> None:
        if keys:
            async with self._redis.pipeline(transaction=True) as pipe:
                pipe.delete(*[key for key in keys if key.startswith(self._index(tenant_id).encode())])
                pipe.zrem(self._index(tenant_id), *keys)
                await pipe.execute()

    def _note_failure(self, error: Exception) -> None:
        if not isinstance(error, ResponseError):  # A ResponseError is an answer: Redis is full, or refused the command.
            self._rests_until = time.monotonic() + REST_SECONDS
        log.debug("cannot use the shared cache", cache=self._name, reason=type(error).__name__)

    def _index(self, tenant_id: UUID) -> str:
        # In braces: the hash tag by which a cluster chooses the node, so that a tenant's keys lie together.
        return f"recollect:{self._name}:{{{tenant_id}}}"

    def _key(self, tenant_id: UUID, material: bytes) -> str:
        digest = hashlib.blake2b(tenant_id.bytes + material, key=self._secret, digest_size=32, person=b"key")
        return f"{self._index(tenant_id)}:{digest.hexdigest()}"

    def _seal(self, key: str, value: bytes) -> bytes:
        sealed = hashlib.blake2b(key.encode(), key=self._secret, digest_size=_SEAL_BYTES, person=b"value")
        sealed.update(value)
        return sealed.digest()

    def _unseal(self, key: str, sealed: object) -> bytes | None:
        if not isinstance(sealed, bytes) or not sealed.startswith(_VERSION) or len(sealed) > MAX_BYTES:
            return None
        seal, value = sealed[1 : 1 + _SEAL_BYTES], sealed[1 + _SEAL_BYTES :]
        return value if hmac.compare_digest(seal, self._seal(key, value)) else None
