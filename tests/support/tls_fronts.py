"""TLS in front of servers whose wheels have none: the decrypted bytes are passed on to their sockets."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

SSL_REQUEST = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
"""The request of a PostgreSQL client for TLS; the answer `S` agrees."""


@asynccontextmanager
async def tls_front(socket: Path, tls: ssl.SSLContext, *, is_postgresql: bool = False) -> AsyncIterator[int]:
    """A port on 127.0.0.1 that leads to the socket, for as long as the context lasts."""

    async def connected(client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        writers = [answer]
        try:
            if is_postgresql:
                assert await client.readexactly(len(SSL_REQUEST)) == SSL_REQUEST, "no TLS is asked for"
                answer.write(b"S")
                await answer.drain()
                await answer.start_tls(tls)
            server, request = await asyncio.open_unix_connection(str(socket))
            writers.append(request)
            pipes = [asyncio.create_task(_pipe(client, request)), asyncio.create_task(_pipe(server, answer))]
            await asyncio.wait(pipes, return_when=asyncio.FIRST_COMPLETED)
            for task in pipes:
                task.cancel()
        except (OSError, asyncio.IncompleteReadError):
            pass  # The client refused the certificate, or disconnected.
        finally:
            for writer in writers:
                writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=None if is_postgresql else tls)
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        server.close()


async def _pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(65536):
        sink.write(chunk)
        await sink.drain()
