"""Listeners that read server-sent events of /v1 one by one."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.gateway import RunningGateway


def revision_of_event(place: str | None) -> int:
    """The revision in the id of an event; 0 without an id."""
    return int((place or "0").rpartition("-")[2])


@dataclass(frozen=True, slots=True)
class Event:
    """One received event. `name` is empty if it only had an id."""

    name: str
    id: str | None
    data: Any

    @property
    def revision(self) -> int:
        """The revision in its id."""
        return revision_of_event(self.id)


@dataclass(slots=True)
class EventReader:
    """The events of one answer. `place`: the last received id, which a browser would send again.

    `first`: the event with the beginning of the stream.
    """

    lines: AsyncIterator[str]
    status: int
    place: str | None = None
    first: Event = Event("", None, None)

    async def next(self) -> Event | None:
        """The next event without comments; None at the end."""
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
        """The revisions of the received changes until one is reached, whether it is received or not."""
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
    """Listen to a graph; an opened stream has already sent where it begins."""
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
