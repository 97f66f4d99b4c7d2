"""Unknown clients: whatever they send, however slowly and on however many connections, others are served."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from recollect.settings import Settings
from recollect.transfer.formats import FORMATS
from recollect_http.server.http_protocol import BODY_SHARE, MAX_AHEAD
from recollect_http.server.uvicorn_server import server_config
from tests.support.gateway import RunningGateway, eventually, rpc_headers, serving
from tests.support.timeouts import MAX_WAIT_SECONDS

GET = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
MEGABYTE = 1024 * 1024
SHORT = 1.0


@pytest.fixture(scope="module")
def impatient(settings: Settings) -> Settings:
    """Settings with time limits so short that a test can wait for their end."""
    return settings.model_copy(
        update={"header_seconds": SHORT, "body_seconds": SHORT, "answer_seconds": SHORT, "keep_alive_seconds": 1}
    )


@pytest.fixture(scope="module")
def hurried(impatient: Settings) -> Iterator[RunningGateway]:
    """A gateway with short time limits."""
    with serving(impatient) as gateway:
        yield gateway


class Connection:
    """A raw connection, for requests that no HTTP client would send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> bool:
        """Send data, and return whether the other side still accepts it."""
        try:
            self.writer.write(data)
            await asyncio.wait_for(self.writer.drain(), MAX_WAIT_SECONDS)
        except OSError:
            return False
        return not self.writer.is_closing()

    async def rest(self) -> bytes:
        """Everything that arrives until the other side closes."""
        got = bytearray()
        try:
            while part := await asyncio.wait_for(self.reader.read(65536), MAX_WAIT_SECONDS):
                got += part
        except ConnectionError:
            pass
        return bytes(got)

    async def rest_while_sending(self, drop: bytes) -> bytes:
        """Everything that arrives until the other side closes, while a drop is sent now and then."""
        rest = asyncio.create_task(self.rest())
        for _ in range(int(MAX_WAIT_SECONDS * 10)):
            if rest.done() or not await self.send(drop):
                break
            await asyncio.sleep(0.1)
        return await rest

    async def answer(self) -> tuple[int, bytes]:
        """The status and the body of one answer of known length."""
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), MAX_WAIT_SECONDS)
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        return int(head[9:12]), await self.reader.readexactly(length)


@asynccontextmanager
async def connected(gateway: RunningGateway, source: str | None = None) -> AsyncIterator[Connection]:
    address = urlsplit(gateway.url)
    local = (source, 0) if source else None
    reader, writer = await asyncio.open_connection(str(address.hostname), address.port, local_addr=local)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()


def refusal(raw: bytes) -> tuple[int, dict[str, Any]]:
    """The status and the problem of a refusal, which is the last answer."""
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    problem = json.loads(body)
    assert problem["status"] == int(head[9:12])
    return problem["status"], problem


class TestHeaders:
    """The number, the size and the time of headers are bounded."""

    @pytest.mark.parametrize(
        "begin",
        [
            GET + b"X-Long: ",
            GET + b"X",
            b"GET /",
            POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: ",
            POST + b"Transfer-Encoding: chunked\r\n\r\n1;extension=",
        ],
        ids=["value", "name", "address", "trailer", "chunk extension"],
    )
    async def test_an_endless_header_is_cut_off(self, gateway: RunningGateway, begin: bytes) -> None:
        async with connected(gateway) as attacker:
            sent, going = 0, await attacker.send(begin)
            while going and sent < 64 * MEGABYTE:
                going = await attacker.send(b"a" * MEGABYTE)
                sent += MEGABYTE
            assert sent < 32 * MEGABYTE  # Systems buffer some of it.

    @pytest.mark.parametrize(
        "prefix", [GET, POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"], ids=["head", "trailers"]
    )
    async def test_endless_headers_are_cut_off(self, gateway: RunningGateway, prefix: bytes) -> None:
        async with connected(gateway) as attacker:
            sent, going = 0, await attacker.send(prefix)
            while going and sent < 64 * MEGABYTE:
                going = await attacker.send(b"X-More: a\r\n" * 100_000)
                sent += MEGABYTE
            assert sent < 32 * MEGABYTE

    @pytest.mark.proves("security: connections")
    @pytest.mark.parametrize(
        ("headers", "status"),
        [
            (b"X-A: a\r\n" * 90, 200),
            (b"X-A: a\r\n" * 100, 431),
            (b"X-A: %s\r\n" % (b"a" * 30_000), 200),
            (b"X-A: %s\r\n" % (b"a" * 33_000), 431),
            (b"X-A: %s\r\n" % (b"a" * 17_000) * 2, 431),
        ],
    )
    async def test_headers_beyond_a_bound_are_refused(
        self, gateway: RunningGateway, headers: bytes, status: int
    ) -> None:
        async with connected(gateway) as client:
            assert await client.send(GET + headers + b"Connection: close\r\n\r\n")
            raw = await client.rest()
        assert int(raw[9:12]) == status
        if status == 431:
            assert refusal(raw)[1]["code"] == "headers_too_large"

    @pytest.mark.parametrize("drop", [b"", b"X-Slow: a\r\n", b"a"], ids=["silent", "lines", "bytes"])
    async def test_incomplete_headers_time_out(self, hurried: RunningGateway, drop: bytes) -> None:
        async with connected(hurried) as attacker:
            assert await attacker.send(GET + b"X-Half: ")
            raw = await attacker.rest_while_sending(drop)
            status, problem = refusal(raw)
        assert (status, problem["code"]) == (408, "request_timeout")

    @pytest.mark.parametrize("drop", [b"", b"\r\n"], ids=["silent", "empty lines"])
    @pytest.mark.parametrize("asked", [b"", GET + b"\r\n"], ids=["at once", "after an answer"])
    async def test_an_idle_connection_is_closed(self, hurried: RunningGateway, asked: bytes, drop: bytes) -> None:
        async with connected(hurried) as attacker:
            if asked:
                await attacker.send(asked)
                assert (await attacker.answer())[0] == 200
            raw = await attacker.rest_while_sending(drop)
            assert b" 200 " not in raw

    async def test_the_number_of_pipelined_requests_is_bounded(self, gateway: RunningGateway) -> None:
        async with connected(gateway) as client:
            assert await client.send((GET + b"\r\n") * MAX_AHEAD)
            for _ in range(MAX_AHEAD):
                assert (await client.answer())[0] == 200
        async with connected(gateway) as attacker:
            await attacker.send((GET + b"\r\n") * 10_000)
            assert (await attacker.rest()).count(b" 200 ") < 1_000

    @pytest.mark.proves("security: trailers")
    async def test_a_trailer_does_not_count_as_a_header(self, gateway: RunningGateway, key: str) -> None:
        """Proxies that check headers must see the same headers as we do."""
        async with connected(gateway) as client:
            trailer = b"0\r\nAuthorization: Bearer %s\r\n\r\n" % key.encode()
            await client.send(
                b"GET /v1/graphs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + trailer
            )
            assert (await client.answer())[0] == 401


class TestBodies:
    """Bodies arrive in time, or time out."""

    @pytest.mark.proves("security: connections")
    @pytest.mark.parametrize("drop", [b"", b"1\r\na\r\n"], ids=["silent", "bytes"])
    async def test_a_slow_body_times_out(self, hurried: RunningGateway, key: str, drop: bytes) -> None:
        credential = b"Authorization: Bearer %s\r\n" % key.encode()
        async with connected(hurried) as attacker:
            assert await attacker.send(POST + credential + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            raw = await attacker.rest_while_sending(drop)
            status, problem = refusal(raw)
        assert (status, problem["code"]) == (408, "request_timeout")

    async def test_an_endless_body_is_not_read_for_ever_after_its_answer(self, hurried: RunningGateway) -> None:
        async with connected(hurried) as attacker:
            assert await attacker.send(POST + b"Transfer-Encoding: chunked\r\n\r\n")
            assert (await attacker.answer())[0] == 401
            chunk = b"1000\r\n" + b"a" * 0x1000 + b"\r\n"
            give_up = asyncio.get_running_loop().time() + MAX_WAIT_SECONDS
            while await attacker.send(chunk * 20):
                assert asyncio.get_running_loop().time() < give_up

    async def test_a_long_body_that_keeps_arriving_is_accepted(self, settings: Settings, key: str) -> None:
        """It takes several windows, with ten times the required bytes in each."""
        window, pieces = 2.0, 80
        piece = b'{"type":"entity","name":"x","entityType":"t","observations":[]}\n' * (BODY_SHARE // 128)
        with serving(settings.model_copy(update={"body_seconds": window})) as patient:
            async with patient.http(key, **{"Content-Type": FORMATS["jsonl"].media_type}) as http:

                async def slowly() -> AsyncIterator[bytes]:
                    for _ in range(pieces):
                        yield piece
                        await asyncio.sleep(0.1)

                started = asyncio.get_running_loop().time()
                response = await http.post("/v1/graphs/long/imports?format=jsonl", content=slowly())
                assert response.status_code == 202, response.text
                assert asyncio.get_running_loop().time() - started > 2 * window


@pytest.mark.proves("security: connections")
async def test_a_client_that_does_not_read_its_answers_is_cut_off(hurried: RunningGateway, key: str) -> None:
    """The answers exceed what the systems between client and gateway buffer."""
    address = urlsplit(hurried.url)
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    headers = rpc_headers() | {
        "Host": "localhost:1",
        "Authorization": f"Bearer {key}",
        "Content-Length": str(len(body)),
    }
    lines = [f"{name}: {value}" for name, value in headers.items()]
    request = "\r\n".join(["POST /mcp/x/all HTTP/1.1", *lines, "", ""]).encode() + body
    with socket.socket() as attacker:
        attacker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        attacker.connect((str(address.hostname), address.port))
        port = attacker.getsockname()[1]

        async def cut_off() -> bool:
            return not [
                each for each in psutil.Process().net_connections("tcp") if each.raddr and each.raddr.port == port
            ]

        attacker.sendall(request * MAX_AHEAD)
        assert (await asyncio.to_thread(attacker.recv, 1024)).startswith(b"HTTP/1.1 200")
        await eventually(cut_off)


class TestConnections:
    """The number of connections is bounded, in all and per address."""

    @pytest.mark.proves("security: connections")
    async def test_connections_beyond_the_bound_of_an_address_are_refused(self, settings: Settings) -> None:
        with serving(settings.model_copy(update={"max_connections_per_address": 3})) as gateway:
            async with connected(gateway) as first, connected(gateway) as second, connected(gateway) as third:
                for one in (first, second, third):
                    await one.send(GET + b"\r\n")
                    assert (await one.answer())[0] == 200
                async with connected(gateway) as fourth:
                    await fourth.send(GET + b"\r\n")
                    status, problem = refusal(await fourth.rest())
                assert (status, problem["code"]) == (503, "too_many_connections")
                await first.send(GET + b"\r\n")
                assert (await first.answer())[0] == 200

            async def served() -> bool:
                async with connected(gateway) as later:
                    await later.send(GET + b"Connection: close\r\n\r\n")
                    return b" 200 " in await later.rest()

            await eventually(served)

    @pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only one address leads to this machine")
    async def test_one_address_leaves_connections_for_others(self, settings: Settings) -> None:
        bounds = {"max_connections": 6, "max_connections_per_address": 4}
        with serving(settings.model_copy(update=bounds)) as gateway:
            held = [connected(gateway) for _ in range(20)]
            opened = [await each.__aenter__() for each in held]
            assert b" 503 " in await opened[-1].rest()
            async with connected(gateway, "127.0.0.2") as neighbour:
                await neighbour.send(GET + b"\r\n")
                assert (await neighbour.answer())[0] == 200
            for each in held:
                await each.__aexit__(None, None, None)

    @pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only one address leads to this machine")
    async def test_a_trusted_proxy_may_open_connections_up_to_the_total(self, settings: Settings) -> None:
        bounds = {"max_connections": 4, "max_connections_per_address": 1, "trusted_proxies": ["127.0.0.2/32"]}
        with serving(settings.model_copy(update=bounds)) as gateway:
            held = [connected(gateway, "127.0.0.2") for _ in range(5)]
            opened = [await each.__aenter__() for each in held]
            for one in opened[:4]:
                await one.send(GET + b"\r\n")
                assert (await one.answer())[0] == 200
            assert b" 503 " in await opened[4].rest()
            for each in held:
                await each.__aexit__(None, None, None)


async def test_a_connection_is_kept_longer_than_proxies_keep_theirs(settings: Settings) -> None:
    """Proxies keep connections for 60 seconds, and the client side must be the first to close."""
    assert server_config(None, settings).timeout_keep_alive > 60
