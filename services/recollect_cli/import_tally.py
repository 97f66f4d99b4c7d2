"""The outcome of an import, for people."""

from dataclasses import dataclass
from typing import Self

import msgspec


@dataclass(frozen=True, slots=True)
class ImportTally:
    """How much of a file was imported. `accepted` counts the items in the graph now, `broken` those left out."""

    entities: int = 0
    facts: int = 0
    observations: int = 0
    relations: int = 0
    changed: int = 0
    known: int = 0
    accepted: int = 0
    broken: int = 0

    @classmethod
    def of(cls, result: dict[str, msgspec.Raw]) -> Self:
        """The tally of an import whose job had this result."""
        counts = {name: int(bytes(value)) for name, value in result.items() if name != "dry_run"}

        def total(outcome: str) -> int:
            return sum(counts[f"{item}_{outcome}"] for item in ("entities", "facts", "relations"))

        return cls(
            entities=counts["entities_created"],
            facts=counts["facts_created"],
            observations=counts["observations_added"],
            relations=counts["relations_created"],
            changed=total("updated"),
            known=total("skipped"),
            accepted=total("created") + total("updated") + total("skipped"),
            broken=counts["problems"],
        )

    def summary(self, item: str = "lines") -> str:
        """One sentence that counts `item` (a plural)."""
        facts = f"{_counted(self.facts, 'new facts')}, " if self.facts else ""
        parts = [
            f"{_counted(self.entities, 'new entities')}, {facts}{_counted(self.observations, 'new observations')}, "
            f"{_counted(self.relations, 'new relations')}",
            f"{_counted(self.changed, item)} updated existing ones" if self.changed and item != "lines" else "",
            f"{_counted(self.known, item)} contained nothing new" if self.known else "",
            _left_out(self.broken, item) if self.broken else "",
        ]
        return "; ".join(filter(None, parts))


def _counted(count: int, plural: str) -> str:
    """A count with its noun: "1 new entity", "2 new entities"."""
    singular = f"{plural.removesuffix('ies')}y" if plural.endswith("ies") else plural.removesuffix("s")
    return f"{count} {singular if count == 1 else plural}"


def _left_out(broken: int, item: str) -> str:
    if broken == 1:
        return f"1 broken {item.removesuffix('s')}, or a part of it, was left out"
    return f"{broken} broken {item} or parts of them were left out"
