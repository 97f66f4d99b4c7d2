"""Short statements about entities."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from recollect.graphs.model import Revision
from recollect.ids import new_id


@dataclass(frozen=True, slots=True)
class NewObservation:
    """One statement to attach to the entity of that name."""

    entity: str
    content: str
    thread: str | None = None
    said_at: datetime | None = None
    expires_at: datetime | None = None

    def on(self, node_id: UUID, revision: Revision) -> "Observation":
        """The statement on this node, with an id of its own, by who writes; said now where nothing else is told."""
        return Observation(
            new_id(),
            node_id,
            self.entity,
            self.content,
            self.thread,
            self.said_at or revision.at,
            self.expires_at,
            revision.actor,
        )


@dataclass(frozen=True, slots=True)
class Observation:
    """An observation, with the name of the entity that it is about.

    `created_by`: who said it first, whoever attaches it again.
    """

    id: UUID
    node_id: UUID
    entity: str
    content: str
    thread: str | None
    said_at: datetime
    expires_at: datetime | None
    created_by: str
