"""Identifiers: UUIDv7 (RFC 9562), made in one place.

They rise within a process, so that rows of one batch sort by id in the order in which they were given.
"""

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """A new identifier, greater than every earlier one of this process."""
    return uuid7()


def time_of(made: UUID) -> datetime:
    """When an id of `new_id` was made, to the millisecond."""
    return datetime.fromtimestamp((made.int >> 80) / 1000, UTC)
