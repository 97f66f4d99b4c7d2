"""Vector indexes: which graph has one, what it is of, and in which part of the vectors it is."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from recollect.platform.sql import Query

PARTITIONS = 16
"""Tables that the vectors of tenants are dealt out to, by a hash of the tenant's id.

With MAX_INDEXES of each that is 1,600 graphs. Twice as many parts would halve what each holds and double what a
statement without a tenant, such as the maintenance of the server, goes through. A change takes a migration that copies
every vector.
"""

MAX_INDEXES = 100
"""Vector indexes of one part, at most: PostgreSQL looks at each for every statement on it, and for every vector that is
written there. 800 in one table made planning forty times slower (measured; docs/benchmarks.md)."""

THOROUGH = 60_000
"""Memories from which on a graph's index is built thoroughly: of as many passages one that is built as a small graph's
finds too little, however widely it is searched (measured; docs/benchmarks.md). To add a vector to it takes longer."""

SEARCH_WIDTHS = {0: 200, 20_000: 400, 250_000: 800, 500_000: 1_000}
"""How wide an index of so many passages or more is searched (hnsw.ef_search): the time of a search grows with it, and
of a small graph less finds as much (measured; docs/benchmarks.md)."""

SHRUNK = 0.5
"""A graph loses its index when it has fallen below this share of the size from which one is built."""

POSTGRESQL_DEFAULT_MB = 64


@dataclass(frozen=True, slots=True)
class Thoroughness:
    """How an index is built: how many links a passage has on each level but the lowest, which has twice as many (`m`),
    and among how many candidates they are chosen (`ef_construction`)."""

    links: int
    candidates: int

    @property
    def place_bytes(self) -> int:
        """Bytes of memory that a passage takes while it is built, beside its vector (measured with pgvector 0.8)."""
        return 50 * self.links


ORDINARY, THOROUGHLY = Thoroughness(16, 128), Thoroughness(24, 300)


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The index of one graph's live vectors of one model. Its name says of which graph, model and dimensions.

    `is_thorough`: it is built THOROUGHLY, by another name. Which of the two a graph has is nothing that searches know.
    """

    tenant_id: UUID
    graph_id: UUID
    model: str
    dimensions: int
    is_thorough: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """The index's name, of 58 characters; PostgreSQL knows 63."""
        of = f"{self.model}:{self.dimensions}" + (":thorough" if self.is_thorough else "")
        kind = hashlib.blake2s(of.encode(), digest_size=4).hexdigest()
        return f"searched_vectors_{self.graph_id.hex}_{kind}"

    @property
    def other(self) -> "VectorIndex":
        """The one of the same vectors that is built the other way."""
        return replace(self, is_thorough=not self.is_thorough)

    @property
    def thoroughness(self) -> Thoroughness:
        """How it is built."""
        return THOROUGHLY if self.is_thorough else ORDINARY

    def memory_mb(self, passages: int, most: int) -> int:
        """In how many megabytes it is built of so many passages, with a quarter to spare; `most` at most.

        A number takes two bytes.
        """
        needed = round(1.25 * passages * (2 * self.dimensions + self.thoroughness.place_bytes) / 1_000_000)
        return min(most, max(needed, POSTGRESQL_DEFAULT_MB))


@dataclass(frozen=True, slots=True)
class LargeGraph:
    """A graph that may have an index, and the number of the part that holds its tenant's vectors."""

    tenant_id: UUID
    graph_id: UUID
    partition: int
    memories: int


def first_of_each_partition(graphs: Sequence[LargeGraph]) -> list[LargeGraph]:
    """Those graphs, in their order, that are among the first MAX_INDEXES of their part."""
    seen = Counter[int]()
    first = []
    for graph in graphs:
        seen[graph.partition] += 1
        if seen[graph.partition] <= MAX_INDEXES:
            first.append(graph)
    return first


def partition_name(number: int) -> str:
    """The table that is the part of the vectors with this number, from 0."""
    return f"searched_vectors_{number:02}"


def create_statement(index: VectorIndex, partition: int) -> Query:
    """The DDL that builds the index beside readers and writers; it takes no parameters, so that they are written out.

    Partial: one index over all tenants, filtered, found 1 of 20 rows for a small tenant (measured). It is built, and
    searched (SEARCH_WIDTHS), more widely than by default: of 100,000 that found .93 (measured). On the part itself,
    where alone PostgreSQL builds beside writers.
    """
    model, built = index.model.replace("'", "''"), index.thoroughness
    return Query(
        f"CREATE INDEX CONCURRENTLY {index.name} ON {partition_name(partition)} "
        f"USING hnsw ((embedding::halfvec({int(index.dimensions)})) halfvec_cosine_ops) "
        f"WITH (m = {built.links}, ef_construction = {built.candidates}) "
        f"WHERE tenant_id = '{UUID(str(index.tenant_id))}' AND graph_id = '{UUID(str(index.graph_id))}' "
        f"AND live AND model = '{model}'"
    )


def leave_out_of_statistics(name: str) -> Query:
    """The DDL that has ANALYZE take no samples of an index's vectors: no plan needs them, and they outlive erasure."""
    return Query(f'ALTER INDEX "{name}" ALTER COLUMN 1 SET STATISTICS 0')


def analyze_statement(partition: int) -> Query:
    """The DDL that tells the planner how many vectors of which graphs a part has, without sampling vectors.

    Before it knows that a graph is large, it sorts all of its vectors rather than to read by the index.
    """
    return Query(f"ANALYZE {partition_name(partition)} (tenant_id, graph_id, model, live)")


def drop_statement(name: str) -> Query:
    """The DDL that takes an index away beside readers and writers."""
    return Query(f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"')
