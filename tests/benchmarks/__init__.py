"""`make bench`: what a call costs, compared with two floors measured in the same run.

The numbers of one machine on one day mean little; ratios within one run mean more. Each call is therefore measured
beside two lower bounds:

- **echo**: the SDK's bare echo tool over the same HTTP server (`echo_server.py`), with an argument and a reply as long
  as the call's. What HTTP, Litestar's mount and the SDK cost, the client included.
- **SQL**: the same statements as in the call, with the same arguments, sent directly by asyncpg (`recording.py`).

The aim is a ratio, p50 / (p50 echo + p50 SQL), of 1.5 at most, and a growth, p50 at the largest size / p50 at the
smallest, near 1 for all calls except those that find or walk more in a larger graph (`flat=False`): `recall`, three of
the searches, `find_path` and `extract_subgraph`. No measurement fails because of its time: tests check what is correct,
benchmarks show what it costs.
"""
