"""A relay of connections to PostgreSQL that can hold back the answers to some of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlsplit

from recollect.moves.model import Cell

CHUNK = 65_536


@dataclass(frozen=True)
class Relay:
    """`cell`: as it was, with an address for other cells that leads through here.

    `flowing`: while it is cleared, those whose application name begins as was asked hear nothing of the server.
    """

    cell: Cell
    flowing: asyncio.Event


@asynccontextmanager
async def relayed(cell: Cell, named: str) -> AsyncIterator[Relay]:
    """A relay to the server of a cell, which is reached by its socket, at a port of this machine."""
    address = urlsplit(cell.url)
    query = parse_qs(address.query)
    socket = f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}"
    connections = set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun = await reader.read(CHUNK)
        of_server, to_server = await asyncio.open_unix_connection(socket)
        to_server.write(begun)
        is_named = b"application_name\0" + named.encode() in begun
        async with asyncio.TaskGroup() as group:
            group.create_task(_pass_on(reader, to_server, None))
            group.create_task(_pass_on(of_server, writer, relay.flowing if is_named else None))

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.add(asyncio.create_task(serve(reader, writer)))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        plain = "sslmode=disable&gssencmode=disable"
        through = f"postgresql://{address.username}@127.0.0.1:{port}{address.path}?{plain}"
        relay = Relay(replace(cell, address_for_cells=through), asyncio.Event())
        relay.flowing.set()
        try:
            yield relay
        finally:
            for connection in connections:
                connection.cancel()
            await asyncio.gather(*connections, return_exceptions=True)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: asyncio.Event | None) -> None:
    try:
        while chunk := await reader.read(CHUNK):
            if flowing is not None:
                await flowing.wait()
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
