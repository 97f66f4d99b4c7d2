"""What `recall` costs as a graph grows: `make bench ARGS="--group recall"`.

Four ways take turns, each with questions of its own from the same mix and none of them twice, so that no cache holds
its answer already:

- **floor**: one row of `nodes` by its primary key, in a transaction of the same shape (BEGIN with the tenant, one
  statement, COMMIT: three round trips) on a connection like those of the gateway's pool. What PostgreSQL, asyncpg and
  this machine ask for anything.
- **service**: the question embedded and `recall.service.recall` in its transaction, in this process.
- **exact**: the same without the index of vectors; the two tell from which size on the index is worth having.
- **MCP**: the tool `recall` through the gateway over HTTP, the credential's look-up included.

Then the same questions are answered twice, by whatever indexes there are and without any of vectors, and compared.
"""

TARGETS = {10_000: 0.025, 100_000: 0.060}
"""Seconds that the p95 of `recall` may take at so many passages, on an idle core."""

AGREEMENT = 0.98
"""Share of the exact path's first ten that the index path must find, on average."""
