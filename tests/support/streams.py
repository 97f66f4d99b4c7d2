"""Listeners: server-sent events of /v1, read one by one."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.gateway import RunningGateway


def revision_of_event(place: str | None) -> int:
    """The revision that an event's id says; 0 of none."""
    return int((place or "0").rpartition("-")[2])


@dataclass(frozen=True, slots=True)
class Event:
    """One event as it came. `name` empty: only its id was told."""

    name: str
    id: str | None
    data: Any

    @property
    def revision(self) -> int:
        """The revision that its id says."""
        return revision_of_event(self.id)


@dataclass(slots=True)
class EventReader:
    """The events of one answer. `place`: the last id that was told, as a browser would send it again.

    `first`: what told where the stream begins.
    """

    lines: AsyncIterator[str]
    status: int
    place: str | None = None
    first: Event = Event("", None, None)

    async def next(self) -> Event | None:
        """The next event, comments left out; None at the end."""
        name, data, told = "", None, None
        async for line in self.lines:
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data = json.loads(value)
            elif field == "id":
                self.place = told = value
            elif not line and (name or told):
                return Event(name, told, data)
        return None

    async def named(self, name: str = "change") -> Event:
        """The next event of that name."""
        while (event := await self.next()) is not None:
            if event.name == name:
                return event
        raise AssertionError(f"the stream ended without {name}")

    async def changes(self, until: int) -> list[int]:
        """The revisions of the changes that are told until one is reached, told of or not."""
        told: list[int] = []
        while revision_of_event(self.place) < until:
            event = await self.next()
            assert event is not None, f"the stream ended at {self.place}"
            if event.name == "change":
                told.append(int(event.data["revision"]))
        return told


@asynccontextmanager
async def listening(
    gateway: RunningGateway, key: str, graph: str = "default", *, last: str | int | None = None, query: str = ""
) -> AsyncIterator[EventReader]:
    """Listen to a graph; a stream that was opened has told where it begins."""
    headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": str(last)})
    async with (
        gateway.http(key) as http,
        http.stream("GET", f"/v1/graphs/{graph}/changes{query}", headers=headers) as response,
    ):
        reader = EventReader(aiter(response.aiter_lines()), response.status_code)
        if response.status_code == 200:
            first = await reader.next()
            assert first is not None
            assert first.name in ("", "refetch"), first
            reader.first = first
        yield reader
