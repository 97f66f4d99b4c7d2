"""Scripts that Redis runs."""

from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis


class Script:
    """A Lua script, which is sent to Redis once and then named by its hash.

    It is loaded before its first call: the client's own script object is called first and loaded once Redis does not
    know it, which leaves an error in the first trace of each start. Where Redis has forgotten it, the client loads it.
    """

    def __init__(self, redis: Redis, source: str) -> None:
        self._redis, self._source = redis, source
        self._script = redis.register_script(source)
        self._is_loaded = False

    async def __call__(self, *, keys: Sequence[str], args: Sequence[bytes | float | str]) -> Any:
        """What the script returns. Raises RedisError or OSError."""
        if not self._is_loaded:
            await self._redis.script_load(self._source)
            self._is_loaded = True
        return await self._script(keys=keys, args=args)
