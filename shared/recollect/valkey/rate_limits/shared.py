"""Counts in Redis, which all gateways share.

They are the sliding window counters of the library `limits`: two numbers for each limit, however many requests it
allows, by the clock of Redis, so that gateways whose clocks differ count alike. (The library's moving window stores the
time of each request by the gateway's clock.) The library counts one limit at a time, and needs a second call for what
is left. Here its scripts run inside one script: a request takes one round trip instead of four, and it is counted for
all of its limits or, where one of them is reached, for none.
"""

from collections.abc import Sequence

from limits.aio.storage.redis.bridge import RedisBridge
from redis.asyncio import Redis

from recollect.valkey.rate_limits.model import RateDecision, RateLimit, SlidingWindow
from recollect.valkey.scripts import Script

_SCRIPT = f"""
local acquire = function(KEYS, ARGV)
{RedisBridge.SCRIPT_ACQUIRE_SLIDING_WINDOW.decode()}
end
local window = function(KEYS, ARGV)
{RedisBridge.SCRIPT_SLIDING_WINDOW.decode()}
end
local limits, take = #KEYS / 2, ARGV[1] == '1'
local keys = function(i) return {{KEYS[2 * i - 1], KEYS[2 * i]}} end
local reached = 0
for i = 1, take and limits or 0 do
  if not acquire(keys(i), {{ARGV[2 * i], ARGV[2 * i + 1], 1}}) then
    reached = i
    for counted = 1, i - 1 do redis.call('decr', KEYS[2 * counted]) end
    break
  end
end
local windows = {{}}
for i = 1, limits do windows[i] = window(keys(i), {{ARGV[2 * i + 1]}}) end
return {{reached, windows}}
"""
"""Takes, for each limit, the keys of its previous and its current window. Arguments: 1 to count the request, else 0;
then for each limit its quota and its seconds. Answers which limit was reached, from 1 on, or 0, and the windows."""

_WindowReply = tuple[bytes | None, int, bytes | None, int]


class SharedWindows:
    """The windows of all limits, by their subjects."""

    def __init__(self, redis: Redis) -> None:
        self._script = Script(redis, _SCRIPT)

    async def ask(self, limits: Sequence[RateLimit], *, take: bool) -> RateDecision:
        """What is left of these limits; with `take`, after the request was counted for all of them or none.

        Raises RedisError or OSError.
        """
        keys = [key for limit in limits for key in (f"{limit.subject}:before", limit.subject)]
        arguments = [number for limit in limits for number in (limit.quota, limit.seconds)]
        reached, windows = await self._script(keys=keys, args=[int(take), *arguments])
        states = [_window(reply).state(limit) for limit, reply in zip(limits, windows, strict=True)]
        if take:
            return RateDecision(states, states[reached - 1] if reached else None)
        return RateDecision(states, next((state for state in states if not state.remaining), None))


def _window(reply: _WindowReply) -> SlidingWindow:
    previous, previous_ttl, current, current_ttl = reply
    return SlidingWindow(int(previous or 0), max(previous_ttl, 0) / 1000, int(current or 0), max(current_ttl, 0) / 1000)
