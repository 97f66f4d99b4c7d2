"""Quotas of a plan with their use, as rows of a table (templates/quotas.html)."""

from dataclasses import dataclass

NEARLY_FULL, FULL = 80, 100
"""Percent of a quota from which on it is marked."""


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """A quota of the plan, and how much of it is used. `percent` None: it has no limit."""

    name: str
    used: int
    limit: int | None

    @property
    def percent(self) -> int | None:
        """The used part, whole percents."""
        return None if not self.limit else self.used * 100 // self.limit

    @property
    def state(self) -> str:
        """The kind of badge that it gets."""
        percent = self.percent or 0
        return "bad" if percent >= FULL else "warn" if percent >= NEARLY_FULL else ""

    @property
    def is_bytes(self) -> bool:
        """Whether it counts bytes."""
        return self.name.endswith("bytes")
