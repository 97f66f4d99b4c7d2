"""How long a deleted tenant can be restored, the outcomes of a step of its erasure, and what is left of it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from recollect.errors import InvalidInput

MAX_GRACE = timedelta(days=365)
ROWS_AT_ONCE = 5_000
"""Rows that a step deletes, at most: a second or two."""


class StepOutcome(StrEnum):
    """What became of a step: there is more to do, the tenant is gone, or somebody else is at work in it."""

    MORE = "more"
    ERASED = "erased"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """What is left of a tenant that was erased.

    `content`: JSON as it was written: which tenant it was, when and by whom it was deleted, when it was erased, and how
    many rows of each table went (`rows`). `sha256`: of these bytes, in hexadecimal digits.
    """

    id: UUID
    number: int
    erased_at: datetime
    slug: str
    content: str
    sha256: str


def checked_grace(grace: timedelta) -> timedelta:
    """The time in which a tenant can be restored, if it is within bounds; raises InvalidInput."""
    if not timedelta(0) <= grace <= MAX_GRACE:
        raise InvalidInput(f"Between 0 and {MAX_GRACE.days} days", path="grace_days")
    return grace
