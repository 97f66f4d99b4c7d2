"""What similar memories are."""

from dataclasses import dataclass
from uuid import UUID

MIN_NEAR_DUPLICATE_SIMILARITY = 0.75
"""Cosine from which an older memory is reported as a near duplicate of a new one."""

MAX_NEAR_DUPLICATES = 3
"""Near duplicates that `remember` reports for each item, at most."""

MAX_COMPARED_WITH_NEW = 2_000
"""Passages with a rare word of a new memory that are compared with it, at most; and as many others of its entity."""

APPROXIMATE_CANDIDATES = 50
"""Passages that a search by the contextual vector finds first; their own vectors are then compared exactly."""

MAX_COMPARED = 20
"""Vectors of one node with which similar nodes are searched, at most: those of its newest passages."""

MAX_LOOKED_AT = 500
"""Passages of the node that are read for these vectors, at most: the newest may not be embedded yet."""


@dataclass(frozen=True, slots=True)
class NearDuplicate:
    """An older memory that says nearly the same. `superseded`: the new one probably replaces it."""

    memory_id: UUID
    text: str
    score: float
    superseded: bool = False
