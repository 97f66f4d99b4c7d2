"""ElicitationRound trips to PostgreSQL, counted where they happen: on a socket in front of the server's own.

Statements that are sent together are one round trip, so the number of statements would be wrong.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

_SOCKET = ".s.PGSQL.5432"
_CHUNK = 65_536


@dataclass(slots=True)
class RoundTrips:
    """How often clients have sent something after an answer of the server, and the folder of the counted socket."""

    folder: Path
    count: int = 0

    def url(self, login: str) -> str:
        """The address of the database for a login."""
        return f"postgresql://{login}@/recollect?host={self.folder}&port=5432"


@asynccontextmanager
async def counted_round_trips(folder: Path, url: str) -> AsyncIterator[RoundTrips]:
    """Forward every connection to a socket in `folder` to the server at `url`, and count its round trips."""
    trips = RoundTrips(folder)
    connections = set[asyncio.Task[None]]()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_Connection(trips).pass_on(reader, writer, _server_socket(url)))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_unix_server(accept, folder / _SOCKET)
    try:
        yield trips
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


def _server_socket(url: str) -> str:
    return f"{parse_qs(urlsplit(url).query)['host'][0]}/{_SOCKET}"


@asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()


class _Connection:
    """The connection of one client, and whether its last request has been answered."""

    def __init__(self, trips: RoundTrips) -> None:
        self._trips = trips
        self._asking = False

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, socket: str) -> None:
        async with _closing(writer):
            server_reader, server_writer = await asyncio.open_unix_connection(socket)
            async with _closing(server_writer):
                # If one end fails, the other sees the end of its stream.
                ways = self._ask(reader, server_writer), self._answer(server_reader, writer)
                await asyncio.gather(*ways, return_exceptions=True)

    async def _ask(self, reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK):
            if not self._asking:
                self._trips.count += 1
                self._asking = True
            server.write(chunk)
            await server.drain()
        server.write_eof()

    async def _answer(self, server: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await server.read(_CHUNK):
            self._asking = False
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
