"""A synthetic graph for walks: entities with one parent and three relations each, the same in every run.

Entity i relates to three random earlier entities, so that the web has no structure that caches could exploit, and its
oldest entities have the most relations. Entities are made in rows of ROW; the rows repeat in cycles of LEVELS + 1, and
in each row below a cycle's first, BRANCHES entities have the same parent in the row above.
"""

import random
from uuid import UUID

from recollect.graph.nodes.model import NodeFields
from tests.benchmarks.corpus import Corpus

ROW = 1_000
"""The number of entities per row; a row is one revision."""

LEVELS = 4
BRANCHES = 3

DESCENDANTS = sum(BRANCHES**level for level in range(1, LEVELS + 1))
"""The number of entities below each complete top."""

LEAST = ROW * (LEVELS + 1)
"""The number of entities of the smallest web with a complete hierarchy."""

TYPE = "relates_to"
_LINKS = 3
_FULL_TOPS = ROW // BRANCHES**LEVELS
"""The number of entities in the first row of a cycle that have all their descendants."""


class Web:
    """Entities and relations, by number; `ids` are those of the stored entities."""

    def __init__(self, corpus: Corpus) -> None:
        self.ids: list[UUID] = []
        self._corpus = corpus
        self._neighbours: list[set[int]] = []

    def name(self, number: int) -> str:
        """The name of entity `number`."""
        return self._corpus.name(number)

    def number(self, name: str) -> int:
        """The number of the entity of that name."""
        return int(name.rsplit(" ", 1)[1])

    def sentence(self, number: int) -> str:
        """The only observation of entity `number`."""
        return self._corpus.entity(number).observations[0]

    def fields(self, number: int) -> NodeFields:
        """The fields of entity `number`, whose parent must already have an id."""
        parent = self._parent(number)
        kind = self._corpus.entity(number).kind
        return NodeFields(name=self.name(number), kind=kind, parent_id=None if parent is None else self.ids[parent])

    def add(self, number: int, node_id: UUID) -> list[tuple[UUID, UUID]]:
        """Add the next entity; returns the targets of its relations."""
        assert number == len(self.ids)
        self.ids.append(node_id)
        chance = random.Random(f"links {number}")
        links = set(chance.sample(range(number), min(_LINKS, number)))
        self._neighbours.append(links)
        for other in links:
            self._neighbours[other].add(number)
        return [(node_id, self.ids[other]) for other in sorted(links)]

    def top(self, chance: random.Random, size: int) -> int:
        """An entity with all its descendants."""
        cycle = chance.randrange(size // LEAST)
        return cycle * LEAST + chance.randrange(_FULL_TOPS)

    def within(self, start: int, depth: int) -> int:
        """The number of entities within `depth` relations, including the start."""
        reached = {start}
        for _ in range(depth):
            reached = self._spread(reached)
        return len(reached)

    def distance(self, start: int, end: int) -> int:
        """The number of relations in a shortest path."""
        reached, distance = {start}, 0
        while end not in reached:
            reached, distance = self._spread(reached), distance + 1
        return distance

    def _spread(self, reached: set[int]) -> set[int]:
        return reached.union(*(self._neighbours[number] for number in reached))

    def _parent(self, number: int) -> int | None:
        row, place = divmod(number, ROW)
        return None if row % (LEVELS + 1) == 0 else (row - 1) * ROW + place // BRANCHES
