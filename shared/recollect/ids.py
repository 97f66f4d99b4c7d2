"""Identifiers: UUIDv7 (RFC 9562), all made here.

They increase within a process, so that rows of one batch sort by id in the order in which the ids were created.
"""

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """A new identifier, greater than every earlier one of this process."""
    return uuid7()


def time_of(uuid: UUID) -> datetime:
    """When an id of `new_id` was created, to the millisecond."""
    return datetime.fromtimestamp((uuid.int >> 80) / 1000, UTC)
