"""Vector indexes: which graph has one, and what it is of."""

import hashlib
from dataclasses import dataclass
from uuid import UUID

from recollect.platform.sql import Query

MAX_INDEXES = 100
"""Vector indexes of one table, at most: 1,000 made planning 200 times slower and inserts eight times (measured)."""

SHRUNK = 0.5
"""A graph loses its index when it has fallen below this share of the size from which one is built."""

POSTGRESQL_DEFAULT_MB = 64


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The index of one graph's live vectors of one model. Its name says of which graph, model and dimensions."""

    tenant_id: UUID
    graph_id: UUID
    model: str
    dimensions: int

    @property
    def name(self) -> str:
        """The index's name, of 58 characters; PostgreSQL knows 63."""
        kind = hashlib.blake2s(f"{self.model}:{self.dimensions}".encode(), digest_size=4).hexdigest()
        return f"passages_vectors_{self.graph_id.hex}_{kind}"

    def memory_mb(self, passages: int, most: int) -> int:
        """In how many megabytes it is built of so many passages, with a quarter to spare; `most` at most.

        A number takes two bytes, and a passage's place in the graph 800 (measured with pgvector 0.8).
        """
        needed = round(1.25 * passages * (2 * self.dimensions + 800) / 1_000_000)
        return min(most, max(needed, POSTGRESQL_DEFAULT_MB))


def create_statement(index: VectorIndex) -> Query:
    """The DDL that builds the index beside readers and writers; it takes no parameters, so that they are written out.

    Partial: one index over all tenants, filtered, found 1 of 20 rows for a small tenant (measured). It is built, and
    searched (hnsw.ef_search of each session), more widely than by default: of 100,000 that found .93 (measured).
    """
    model = index.model.replace("'", "''")
    return Query(
        f"CREATE INDEX CONCURRENTLY {index.name} ON passages "
        f"USING hnsw ((embedding::halfvec({int(index.dimensions)})) halfvec_cosine_ops) WITH (ef_construction = 128) "
        f"WHERE tenant_id = '{UUID(str(index.tenant_id))}' AND graph_id = '{UUID(str(index.graph_id))}' "
        f"AND removed_revision IS NULL AND embedding_model = '{model}'"
    )


def drop_statement(name: str) -> Query:
    """The DDL that takes an index away beside readers and writers."""
    return Query(f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"')
