"""A request for the deletion of an organisation, and what its owner proves to make one."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

WEEK = timedelta(days=7)
"""How long a request does nothing: any owner takes it back."""

RESTORABLE = timedelta(days=30)
"""How long an operator restores an organisation that was deleted by request. The schema has both times."""

FRESH = timedelta(minutes=10)
"""How old the sign-in of a person without a password may be, to ask for a deletion."""

MAX_NOTIFIED = 200
"""The most owners and admins who get a mail about a request."""


@dataclass(frozen=True, slots=True)
class DeletionRequest:
    """Who asked for the deletion, when, and from when on the organisation is deleted."""

    requested_by: UUID
    requested_at: datetime
    due_at: datetime

    @property
    def erased_at(self) -> datetime:
        """When everything is erased, at the earliest."""
        return self.due_at + RESTORABLE
