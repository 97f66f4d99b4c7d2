"""What of a graph is not as it should be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IntegrityIssue:
    """Something that is not as it should be, and how many such there are.

    `name` is an entity's; of a relation it is the source's, with its `target` and type.
    """

    fault: str
    name: str
    target: str | None
    relation: str | None
    total: int
