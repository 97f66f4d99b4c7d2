"""Vector indexes: which graph has one, which vectors it holds, how it is built, and in which partition it is."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from uuid import UUID

from recollect.postgres.sql import Query

PARTITIONS = 16
"""Tables among which the vectors of tenants are distributed, by a hash of the tenant's id.

With MAX_INDEXES in each, 1,600 graphs can have an index. Twice as many partitions would halve the content of each and
double what a statement without a tenant, such as maintenance of the server, reads. A change takes a migration that
copies every vector.
"""

MAX_INDEXES = 100
"""Vector indexes of one partition, at most: PostgreSQL considers each for every statement on the partition, and for
every vector that is written there. 800 in one table made planning forty times slower (measured;
docs/lab/vector-indexes.md)."""


@dataclass(frozen=True, slots=True)
class SearchWidths:
    """How widely an index is searched (hnsw.ef_search), by the number of the question's words.

    `long` is for MANY_WORDS or more, `short` for SHORT_WORDS or fewer. The vector of a short question lies far from
    those of all passages, so the way to the nearest of them is easily missed.
    """

    short: int
    middle: int
    long: int

    def for_words(self, words: int) -> int:
        """The width for a question of so many words, without those that are in every text ("the", "who")."""
        return self.short if words <= SHORT_WORDS else self.long if words >= MANY_WORDS else self.middle


SHORT_WORDS, MANY_WORDS = 2, 6

SEARCH_WIDTHS = {
    0: SearchWidths(400, 200, 200),
    20_000: SearchWidths(800, 400, 250),
    60_000: SearchWidths(800, 500, 300),
    250_000: SearchWidths(1_000, 800, 800),
    500_000: SearchWidths(1_000, 600, 600),
}
"""How widely the index of so many passages or more is searched: the time of a search grows with the width. A smaller
width finds as much in a small graph, and in an index with more links (THOROUGHNESS; measured;
docs/lab/vector-indexes.md)."""


def search_widths(passages: int) -> SearchWidths:
    """How widely an index of so many passages is searched."""
    return SEARCH_WIDTHS[max(size for size in SEARCH_WIDTHS if size <= passages)]


SHRUNK = 0.5
"""A graph loses its index when it has shrunk below this share of the size from which one is built."""

FEW_VECTORS = 1_000
"""The number of vectors of one kind below which a large graph has no index of them. To compare so many one by one takes
about as long as a search in an index (measured; docs/lab/vector-indexes.md)."""

POSTGRESQL_DEFAULT_MB = 64


@dataclass(frozen=True, slots=True)
class Thoroughness:
    """How an index is built: how many links a passage has on each level but the lowest, which has twice as many (`m`),
    and from how many candidates they are chosen (`ef_construction`).

    `candidates_later`: from how many candidates links are chosen for a passage that is added to the finished index,
    for which its writer waits. `name`: a part of the index's name, empty for the ordinary thoroughness.
    """

    name: str
    links: int
    candidates: int
    candidates_later: int

    @property
    def candidate_bytes(self) -> int:
        """Bytes of memory that a passage takes during the build, beside its vector (measured with pgvector 0.8)."""
        return 50 * self.links


ORDINARY = Thoroughness("", 16, 128, 128)

THOROUGHNESS = {
    0: ORDINARY,
    60_000: Thoroughness("thorough", 24, 300, 128),
    500_000: Thoroughness("very thorough", 32, 300, 128),
}
"""How the index of a graph of so many passages or more is built. The index of a large graph, built like that of a small
one, finds too little at any width (measured; docs/lab/vector-indexes.md). Adding a vector to a thorough one takes
longer."""


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The index of one graph's live vectors of one model and kind. Its name derives from these and the thoroughness.

    `other_language`: whether the vectors begin with a zero, as `multilingual` makes them of texts that are not English.
    An index of both kinds would miss what is not of the question's kind: by its one distance they are farther from each
    other than they are (measured; docs/lab/vector-indexes.md).

    A graph's searches use the indexes of one model, of whichever kind and `thoroughness`: so indexes that differ in
    these are equal.
    """

    tenant_id: UUID
    graph_id: UUID
    model: str
    dimensions: int
    other_language: bool = field(default=False, compare=False)
    thoroughness: Thoroughness = field(default=ORDINARY, compare=False)

    @property
    def name(self) -> str:
        """The index's name, of 58 characters; PostgreSQL allows 63."""
        kind = "other languages" if self.other_language else "not other languages"
        properties = ":".join(filter(None, (self.model, str(self.dimensions), kind, self.thoroughness.name)))
        digest = hashlib.blake2s(properties.encode(), digest_size=4).hexdigest()
        return f"searched_vectors_{self.graph_id.hex}_{digest}"

    @property
    def alternatives(self) -> "Sequence[VectorIndex]":
        """The indexes of the same vectors with another thoroughness."""
        return [self.with_thoroughness(other) for other in THOROUGHNESS.values() if other != self.thoroughness]

    def with_thoroughness(self, thoroughness: Thoroughness) -> "VectorIndex":
        """The index of the same vectors with this thoroughness."""
        return replace(self, thoroughness=thoroughness)

    def memory_mb(self, passages: int, max_mb: int) -> int:
        """The memory, in megabytes, to build the index of so many passages: with a quarter to spare, up to `max_mb`.

        A number takes two bytes.
        """
        needed = round(1.25 * passages * (2 * self.dimensions + self.thoroughness.candidate_bytes) / 1_000_000)
        return min(max_mb, max(needed, POSTGRESQL_DEFAULT_MB))


@dataclass(frozen=True, slots=True)
class LargeGraph:
    """A graph that may have an index, and the number of the partition that holds its tenant's vectors."""

    tenant_id: UUID
    graph_id: UUID
    partition: int


@dataclass(frozen=True, slots=True)
class VectorKind:
    """One kind of the vectors that serve a graph, and how many there are, counted up to some number."""

    tenant_id: UUID
    graph_id: UUID
    model: str
    dimensions: int
    other_language: bool
    vectors: int

    @property
    def index(self) -> VectorIndex:
        """The index of these vectors."""
        return VectorIndex(self.tenant_id, self.graph_id, self.model, self.dimensions, self.other_language)


def indexed_kinds(kinds: Sequence[VectorKind], few: int, existing: Set[str]) -> list[VectorIndex]:
    """The indexes of a large graph: of its kinds with `few` vectors or more, or else of that with the most.

    A kind keeps its index until it has shrunk (SHRUNK).
    """

    def is_large(kind: VectorKind) -> bool:
        has_index = any(index.name in existing for index in (kind.index, *kind.index.alternatives))
        return kind.vectors >= (few * SHRUNK if has_index else few)

    large = [kind for kind in kinds if is_large(kind)]
    return [kind.index for kind in large or sorted(kinds, key=lambda kind: -kind.vectors)[:1]]


def within_partitions(indexes: Iterable[tuple[int, Sequence[VectorIndex]]]) -> list[Sequence[VectorIndex]]:
    """The indexes of graphs, each with its partition, without those of graphs for which MAX_INDEXES leaves no room."""
    taken = Counter[int]()
    fitting = []
    for partition, of_graph in indexes:
        if taken[partition] + len(of_graph) <= MAX_INDEXES:
            taken[partition] += len(of_graph)
            fitting.append(of_graph)
    return fitting


def first_of_each_partition(graphs: Sequence[LargeGraph]) -> list[LargeGraph]:
    """The graphs, in their order, that are among the first MAX_INDEXES of their partition."""
    seen = Counter[int]()
    first = []
    for graph in graphs:
        seen[graph.partition] += 1
        if seen[graph.partition] <= MAX_INDEXES:
            first.append(graph)
    return first


def partition_name(number: int) -> str:
    """The table of the partition of the vectors with this number, from 0."""
    return f"searched_vectors_{number:02}"


def create_statement(index: VectorIndex, partition: int) -> Query:
    """The DDL that builds the index beside readers and writers. DDL takes no parameters: values are written out.

    The index is partial: one over all tenants, filtered, found 1 of 20 rows for a small tenant (measured). It is built,
    and searched (SEARCH_WIDTHS), with larger bounds than the defaults, which found .93 of 100,000 (measured). It is on
    the partition, since PostgreSQL builds no index concurrently on a partitioned table.
    """
    model, thoroughness = index.model.replace("'", "''"), index.thoroughness
    return Query(
        f"CREATE INDEX CONCURRENTLY {index.name} ON {partition_name(partition)} "
        f"USING hnsw ((embedding::halfvec({int(index.dimensions)})) halfvec_cosine_ops) "
        f"WITH (m = {thoroughness.links}, ef_construction = {thoroughness.candidates}) "
        f"WHERE tenant_id = '{UUID(str(index.tenant_id))}' AND graph_id = '{UUID(str(index.graph_id))}' "
        f"AND live AND model = '{model}' AND {'' if index.other_language else 'NOT '}other_language"
    )


def later_candidates_statement(index: VectorIndex) -> Query:
    """The DDL that sets from how many candidates the links of later vectors are chosen."""
    return Query(f"ALTER INDEX {index.name} SET (ef_construction = {index.thoroughness.candidates_later})")


def leave_out_of_statistics(name: str) -> Query:
    """The DDL that keeps ANALYZE from sampling an index's vectors: no plan needs samples, and they outlive erasure."""
    return Query(f'ALTER INDEX "{name}" ALTER COLUMN 1 SET STATISTICS 0')


def analyze_statement(partition: int) -> Query:
    """The DDL by which the planner learns how many vectors of which graphs a partition has, without sampling vectors.

    Until it knows that a graph is large, it sorts all of its vectors instead of using the index.
    """
    return Query(f"ANALYZE {partition_name(partition)} (tenant_id, graph_id, model, live, other_language)")


def drop_statement(name: str) -> Query:
    """The DDL that drops an index beside readers and writers."""
    return Query(f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"')
