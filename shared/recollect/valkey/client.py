"""The Redis (or Valkey) client. Redis speeds things up and wakes things up; it may be unreachable at any time."""

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError

from recollect.errors import InvalidInput
from recollect.settings import Settings

MAX_CONNECTIONS = 50


def connect_redis(settings: Settings) -> Redis:
    """A client with short timeouts, for redis://, rediss:// or unix://; it connects when it is first used.

    Calls raise redis.exceptions.RedisError while Redis is unreachable, after two or three times
    `redis_timeout_seconds` at most. Raises InvalidInput when the address cannot be parsed. A rediss:// server must have
    a certificate for its name: by default, the library accepts any certificate of an authority, and so it does with
    `ssl_check_hostname=false` in the address.
    """
    seconds = settings.redis_timeout_seconds
    tls_options = {"ssl_check_hostname": True} if settings.redis_url.startswith("rediss://") else {}
    try:
        # The blocking pool, because the plain one opens connections one after the other: with a Redis
        # that hangs, the hundredth caller would wait a hundred timeouts.
        pool = BlockingConnectionPool.from_url(
            settings.redis_url,
            max_connections=MAX_CONNECTIONS,
            timeout=seconds,
            socket_timeout=seconds,
            socket_connect_timeout=seconds,
            **tls_options,
        )
        # This connects to nothing, but checks the options of the address, which the pool only hands on.
        pool.make_connection()  # type: ignore[no-untyped-call]
    except ValueError:  # Its text may hold the password.
        raise InvalidInput("It must be a redis://, rediss:// or unix:// address", path="RECOLLECT_REDIS_URL") from None
    except (TypeError, RedisError):
        raise InvalidInput(
            "It has an option after the `?` that the client does not support", path="RECOLLECT_REDIS_URL"
        ) from None
    return Redis.from_pool(pool)
