"""`make bench`: what a call costs, beside two floors measured in the same run.

The numbers of one machine on one day say little; ratios inside one run say more. Each call is therefore measured next
to what it cannot go below:

- **echo**: the SDK's bare echo tool over the same HTTP server (`echo_server.py`), with an argument and a reply as long
  as the call's. What HTTP, Litestar's mount and the SDK cost, the client included.
- **SQL**: the very statements of the call, with their arguments, sent straight through asyncpg (`recording.py`).

The aim is a ratio, p50 / (p50 echo + p50 SQL), of 1.5 at most, and a growth, p50 at the largest size / p50 at the
smallest, near 1 for everything but what finds or walks more in a larger graph (`flat=False`): `recall`, three of the
searches, `find_path` and `extract_subgraph`. Nothing here fails on a time: the tests say what is right, this says what
it costs.
"""
