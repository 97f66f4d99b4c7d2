"""How many requests someone may send in a minute, counted for all gateways together.

`limiter` is the way in. It counts in `redis_counters`, and in `process_counters` while Redis is unreachable. Which
limits a request has, such as that of its key, is decided in the gateway (`recollect_gateway.callers.rate_limits`).
"""
