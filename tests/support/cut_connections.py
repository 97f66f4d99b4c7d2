"""A relay of connections to a gateway that can cut them, as a network does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

CHUNK = 65_536


class Relay:
    """The address of a relay; `connections` so far. While it is `refusing`, each new connection is closed at once.

    `loses_answers`: how many answers, which have come from the gateway, are not passed on; the connection is cut.
    """

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url)
        self._writers = set[asyncio.StreamWriter]()
        self.port = 0
        self.connections = 0
        self.refusing = False
        self.loses_answers = 0

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Cut every connection in the middle of what it carries."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on until one of both sides ends it."""
        self.connections += 1
        if self.refusing:
            writer.transport.abort()
            return
        of_gateway, to_gateway = await asyncio.open_connection(self._to.hostname, self._to.port)
        ends = {writer, to_gateway}
        self._writers |= ends
        await asyncio.gather(self._pass_on(reader, to_gateway), self._pass_on(of_gateway, writer, is_answer=True))
        self._writers -= ends

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool = False
    ) -> None:
        with suppress(OSError):
            while chunk := await reader.read(CHUNK):
                if is_answer and self.loses_answers:
                    self.loses_answers -= 1
                    writer.transport.abort()
                    return
                writer.write(chunk)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def relayed(url: str) -> AsyncIterator[Relay]:
    """A relay to the gateway at this address, for as long as the context lasts."""
    relay = Relay(url)
    server = await asyncio.start_server(relay.accept, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        relay.cut()
