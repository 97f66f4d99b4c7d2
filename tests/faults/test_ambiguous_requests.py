"""Requests that could be read in two ways are refused, and what follows them on the connection is not read."""

from collections.abc import Iterator

import pytest

from recollect.settings import Settings
from tests.faults.test_hostile_clients import connected, refusal
from tests.support.gateway import RunningGateway, serving

SMUGGLED = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"

REFUSED = {
    "a target of another authority": (400, b"GET http://evil.example/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "one of another port": (400, b"GET http://localhost:81/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "one with a user": (400, b"GET http://localhost@evil/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "one of another scheme": (400, b"GET ftp://evil/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "one that ends in a query": (400, b"GET http://evil.example?/x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    "chunks in HTTP/1.0": (
        400,
        b"POST /mcp HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ),
    "HTTP/2.0": (505, b"GET /health/live HTTP/2.0\r\nHost: localhost\r\n\r\n"),
    "HTTP/0.9": (505, b"GET /health/live HTTP/0.9\r\nHost: localhost\r\n\r\n"),
}

ACCEPTED = {
    "a target of the same authority": b"GET http://LocalHost/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an address in a query": b"GET /health/live?at=http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "HTTP/1.0": b"GET /health/live HTTP/1.0\r\nHost: localhost\r\n\r\n",
    "a body as it is": b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: identity\r\n\r\n",
}


@pytest.fixture(scope="module")
def gateway(settings: Settings) -> Iterator[RunningGateway]:
    with serving(settings) as gateway:
        yield gateway


@pytest.mark.proves("security: ambiguous-requests")
async def test_requests_of_two_meanings_are_refused(gateway: RunningGateway, subtests: pytest.Subtests) -> None:
    for kind, (status, request) in REFUSED.items():
        with subtests.test(kind):
            async with connected(gateway) as one:
                await one.send(request + SMUGGLED)
                said = await one.rest()
            assert (refusal(said)[0], said.count(b"HTTP/1.1 ")) == (status, 1)


@pytest.mark.proves("security: ambiguous-requests")
async def test_a_body_that_is_encoded_is_refused(gateway: RunningGateway, subtests: pytest.Subtests) -> None:
    """On every address, before anybody reads it."""
    for path in (b"/mcp", b"/v1/graphs/default/memories", b"/oauth/token", b"/sign-in"):
        for encoding in (b"gzip", b"identity, gzip", b"br"):
            with subtests.test(path=path, encoding=encoding):
                async with connected(gateway) as one:
                    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: %s\r\n" % (path, encoding)
                    await one.send(head + b"Content-Length: 2\r\n\r\n{}")
                    assert (await one.answer())[0] == 415


async def test_requests_of_one_meaning_are_answered(gateway: RunningGateway, subtests: pytest.Subtests) -> None:
    for kind, request in ACCEPTED.items():
        with subtests.test(kind):
            async with connected(gateway) as one:
                await one.send(request)
                assert (await one.answer())[0] == 200
