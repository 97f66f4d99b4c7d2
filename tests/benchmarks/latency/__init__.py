"""What `recall` costs as a graph grows: `make bench ARGS="--group recall"`.

Four ways take turns, each with its own questions from the same mix, none of them twice, so that no cache contains the
answer:

- **floor**: one row of `nodes` by its primary key, in a transaction of the same shape (BEGIN with the tenant, one
  statement, COMMIT: three round trips) on a connection like those of the gateway's pool. It is the least time that
  PostgreSQL, asyncpg and this machine need for anything.
- **service**: the question is embedded, and `recall.service.recall` runs in its transaction, in this process.
- **exact**: the same without the vector index; the comparison shows from which size the index is worth having.
- **MCP**: the tool `recall` through the gateway over HTTP, the credential's look-up included.

Then the same questions are answered twice, with and without the vector index, and the answers are compared.
"""

TARGETS = {10_000: 0.025, 100_000: 0.060}
"""The limit of the p95 of `recall` in seconds, by the number of passages, on an idle core."""

AGREEMENT = 0.98
"""The share of the first ten of the exact path that the index path must find, on average."""
