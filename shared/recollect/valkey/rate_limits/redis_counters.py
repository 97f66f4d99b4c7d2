"""Counts in Redis, which all gateways share.

They are sliding window counters: two numbers for each limit, however many requests it allows, by the clock of Redis, so
that gateways whose clocks differ count alike. A request takes one round trip, and is counted for all of its limits or,
where one of them is reached, for none.
"""

from collections.abc import Sequence

from redis.asyncio import Redis

from recollect.valkey.rate_limits.model import RateDecision, RateLimit, SlidingWindow
from recollect.valkey.scripts import Script

_SCRIPT = """
local take, reached, windows = ARGV[1] == '1', 0, {}
for i = 1, #KEYS / 2 do
  local before, key = KEYS[2 * i - 1], KEYS[2 * i]
  local quota, length = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1]) * 1000
  local ttl = redis.call('pttl', key)
  if ttl > 0 and ttl < length then  -- The current window is over, and becomes the previous one.
    redis.call('rename', key, before)
    redis.call('set', key, 0, 'PX', ttl + length)
  end
  local read = function(name) return tonumber(redis.call('get', name)) or 0, math.max(redis.call('pttl', name), 0) end
  local previous, previous_ttl = read(before)
  local current, current_ttl = read(key)
  windows[i] = {previous, previous_ttl, current, current_ttl}
  if reached == 0 and math.floor(previous * previous_ttl / length) + current >= quota then reached = i end
end
for i = 1, take and reached == 0 and #windows or 0 do
  local window, key = windows[i], KEYS[2 * i]
  if window[4] == 0 then
    window[4] = tonumber(ARGV[2 * i + 1]) * 2000
    redis.call('set', key, 0, 'PX', window[4])
  end
  window[3] = redis.call('incr', key)
end
return {reached, windows}
"""
"""Takes, for each limit, the keys of its previous and its current window. Arguments: 1 to count the request, else 0;
then for each limit its quota and its seconds. Answers which limit was reached, from 1 on, or 0, and the windows: the
count of the previous one, its milliseconds to live, and the same of the current one, which lives twice its length."""


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
        states = [_window(*reply).state(limit) for limit, reply in zip(limits, windows, strict=True)]
        return RateDecision(states, states[reached - 1] if reached else None)


def _window(previous: int, previous_ttl: int, current: int, current_ttl: int) -> SlidingWindow:
    return SlidingWindow(previous, previous_ttl / 1000, current, current_ttl / 1000)
