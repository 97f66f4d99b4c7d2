"""How many requests someone may send in a minute, counted for all gateways together; `RateLimiter` is the way in."""
