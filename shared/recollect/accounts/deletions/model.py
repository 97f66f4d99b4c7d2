"""The grace of a deleted tenant, the outcomes of a step of its erasure, and the receipt."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from recollect.errors import InvalidInput

MAX_GRACE = timedelta(days=365)
ROWS_AT_ONCE = 5_000
"""Rows that a step deletes, at most: a second or two."""


class StepOutcome(StrEnum):
    """The outcome of a step: there is more to do, the tenant is erased, or another transaction is using it."""

    MORE = "more"
    ERASED = "erased"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """The record that stays of a tenant that was erased.

    `content`: JSON as it was written: the tenant, when and by whom it was deleted, when it was erased, and the number
    of erased rows of each table (`rows`). `sha256`: of these bytes, in hexadecimal digits.
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
        raise InvalidInput(f"Must be between 0 and {MAX_GRACE.days} days", path="grace_days")
    return grace
