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

SEARCH_WIDTHS = {0: 200, 20_000: 400, 60_000: 250, 250_000: 800, 500_000: 600}
"""How wide an index of so many passages or more is searched (hnsw.ef_search): the time of a search grows with it. Of a
small graph less finds as much, and so it does where an index has more links, as THOROUGHNESS says (measured;
docs/benchmarks.md)."""

SHRUNK = 0.5
"""A graph loses its index when it has fallen below this share of the size from which one is built."""

POSTGRESQL_DEFAULT_MB = 64


@dataclass(frozen=True, slots=True)
class Thoroughness:
    """How an index is built: how many links a passage has on each level but the lowest, which has twice as many (`m`),
    and among how many candidates they are chosen (`ef_construction`).

    `candidates_later`: among how many those of a passage are chosen that comes when the index is there, for which its
    writer waits. `name`: part of the index's, empty for what most have.
    """

    name: str
    links: int
    candidates: int
    candidates_later: int

    @property
    def place_bytes(self) -> int:
        """Bytes of memory that a passage takes while it is built, beside its vector (measured with pgvector 0.8)."""
        return 50 * self.links


ORDINARY = Thoroughness("", 16, 128, 128)

THOROUGHNESS = {
    0: ORDINARY,
    60_000: Thoroughness("thorough", 24, 300, 128),
    500_000: Thoroughness("very thorough", 32, 300, 128),
}
"""How the index of a graph of so many passages or more is built. That of a large graph, built as a small one's, finds
too little, however widely it is searched (measured; docs/benchmarks.md). To add a vector to it takes longer."""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The index of one graph's live vectors of one model. Its name says of which graph, model and dimensions, and how.

    Which `thoroughness` the index of a graph has is nothing that searches know.
    """

    tenant_id: UUID
    graph_id: UUID
    model: str
    dimensions: int
    thoroughness: Thoroughness = field(default=ORDINARY, compare=False)

    @property
    def name(self) -> str:
        """The index's name, of 58 characters; PostgreSQL knows 63."""
        of = ":".join(filter(None, (self.model, str(self.dimensions), self.thoroughness.name)))
        kind = hashlib.blake2s(of.encode(), digest_size=4).hexdigest()
        return f"searched_vectors_{self.graph_id.hex}_{kind}"

    @property
    def others(self) -> "Sequence[VectorIndex]":
        """Those of the same vectors that are built otherwise."""
        return [self.built(other) for other in THOROUGHNESS.values() if other != self.thoroughness]

    def built(self, thoroughness: Thoroughness) -> "VectorIndex":
        """The one of the same vectors that is built so."""
        return replace(self, thoroughness=thoroughness)

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


def later_candidates_statement(index: VectorIndex) -> Query:
    """The DDL that has the links of a vector which comes now chosen among as many as the thoroughness says."""
    return Query(f"ALTER INDEX {index.name} SET (ef_construction = {index.thoroughness.candidates_later})")


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
