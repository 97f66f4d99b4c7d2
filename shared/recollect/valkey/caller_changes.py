"""Notices of changes to callers and their rights, for processes that remember callers. Best effort.

They go by a channel of changes that belongs to no tenant; its messages name tenants where others name graphs. Processes
remember a caller for a few seconds at most: nothing depends on a message's arrival.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from redis.asyncio import Redis
from redis.exceptions import RedisError

from recollect.settings import Settings
from recollect.valkey.change_channel import ChangePublisher
from recollect.valkey.client import connect_redis

EVERYBODY = UUID(int=0)
"""The owner of that channel; also the tenant in a message that concerns all tenants, such as a change of a plan."""

OnCallersChanged = Callable[[UUID], None]
"""Called after the commit with the tenant, or EVERYBODY, whose callers may have changed. Returns at once and never
raises."""

_SECONDS = 2.0


def caller_change_notifier(publisher: ChangePublisher) -> OnCallersChanged:
    """A function that notifies every process, in the background."""
    return lambda tenant_id: publisher.publish(EVERYBODY, [tenant_id])


@asynccontextmanager
async def notify_callers_changed_at_end(settings: Settings) -> AsyncIterator[OnCallersChanged]:
    """A function that notes tenants whose callers have changed; every process is notified when the block ends.

    For commands and operators, who act seldom and keep no connection to Redis.
    """
    acted: set[UUID] = set()
    try:
        yield acted.add
    finally:
        if acted:
            await _publish(settings, acted)


async def _publish(settings: Settings, acted: Collection[UUID]) -> None:
    redis: Redis = connect_redis(settings)
    with suppress(RedisError, OSError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            publisher = ChangePublisher(redis)
            publisher.publish(EVERYBODY, acted)
            await publisher.aclose()
    with suppress(RedisError, OSError):
        await redis.aclose()
