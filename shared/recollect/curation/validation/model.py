"""Faults in the data of a graph."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IntegrityIssue:
    """A kind of fault: its first example, and how many such faults there are.

    `name` is that of the entity; for a relation it is that of the source, in addition to `target` and the type.
    """

    fault: str
    name: str
    target: str | None
    relation: str | None
    total: int
