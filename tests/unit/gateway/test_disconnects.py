"""A request ends with its answer, or when its client disconnects."""

import asyncio
from typing import Any

import pytest

from recollect_http.server.disconnects import DisconnectMiddleware
from tests.support.timeouts import MAX_WAIT_SECONDS

REQUEST = {"type": "http.request", "body": b"{}", "more_body": False}
ANSWER = {"type": "http.response.body", "body": b"{}", "more_body": False}
DISCONNECT = {"type": "http.disconnect"}


async def serve(app: Any, messages: asyncio.Queue[Any], headers: tuple[tuple[bytes, bytes], ...]) -> list[Any]:
    """What an application sends that receives these messages from the server."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)
        if message == ANSWER:
            messages.put_nowait(DISCONNECT)

    scope: Any = {"type": "http", "headers": headers}
    handled = DisconnectMiddleware().handle(scope, messages.get, send, app)
    await asyncio.wait_for(handled, MAX_WAIT_SECONDS)
    return sent


@pytest.mark.parametrize("headers", [(), ((b"content-length", b"2"),)], ids=["no body", "a body"])
async def test_an_application_that_reads_after_its_answer_receives_a_disconnect(headers: Any) -> None:
    """Frameworks do this to read the rest of a body."""
    received = []

    async def app(_: Any, receive: Any, send: Any) -> None:
        received.append(await receive())
        await send(ANSWER)
        received.append(await receive())

    messages: asyncio.Queue[Any] = asyncio.Queue()
    messages.put_nowait(REQUEST)
    assert await serve(app, messages, headers) == [ANSWER]
    assert received == [REQUEST, DISCONNECT]


@pytest.mark.parametrize("read", [True, False], ids=["behind the body", "in the body"])
async def test_a_request_is_cancelled_when_its_client_disconnects(read: bool) -> None:
    ended = []

    async def app(_: Any, receive: Any, send: Any) -> None:
        try:
            await receive()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    messages: asyncio.Queue[Any] = asyncio.Queue()
    for message in (REQUEST, DISCONNECT) if read else (DISCONNECT,):
        messages.put_nowait(message)
    assert await serve(app, messages, ((b"content-length", b"2"),)) == []
    assert ended == ["cancelled"]
