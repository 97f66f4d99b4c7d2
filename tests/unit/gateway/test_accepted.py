"""What a client accepts, and answers in that form however they are cut into parts."""

import json
from typing import Any

import pytest

from recollect_gateway.mcp_endpoint.transport.accepted import Accepted, Form

RESPONSE = {"jsonrpc": "2.0", "id": 1, "result": {"text": "a\nb", "method": "x"}}
NOTIFICATION = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}


def accepted(*values: str) -> Accepted:
    return Accepted.of([(b"accept", value.encode()) for value in values])


def test_what_a_client_accepts_is_read_from_its_header(subtests: pytest.Subtests) -> None:
    for values, form, streams in (
        (("application/json, text/event-stream",), Form.EITHER, True),
        (("application/json", "text/event-stream"), Form.EITHER, True),
        (("TEXT/EVENT-STREAM;q=0.9, Application/JSON",), Form.EITHER, True),
        (("text/*, application/*",), Form.EITHER, True),
        (("text/event-stream, */*",), Form.EITHER, True),
        (("application/json",), Form.JSON, False),
        (("application/json, text/event-stream;q=0",), Form.JSON, False),
        (("application/json, text/plain, */*",), Form.JSON, True),
        (("*/*",), Form.JSON, True),
        (("",), Form.JSON, True),
        ((), Form.JSON, True),
        (("text/event-stream",), Form.EVENTS, True),
        (("text/event-stream, application/json; q=0.0",), Form.EVENTS, True),
        (("text/html",), Form.NONE, False),
        (("application/json;q=0, text/html",), Form.NONE, False),
    ):
        with subtests.test(str(values)):
            assert accepted(*values) == Accepted(form, streams)


async def converted(accept: str, messages: list[dict[str, Any]]) -> tuple[dict[str, Any], list[bytes]]:
    """The start and the parts of the body that a client with this header is sent."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    (convert,) = accepted(accept).put(send, listens=False)
    for message in messages:
        await convert(message)  # type: ignore[arg-type]
    start, *parts = sent
    assert [part.get("more_body", False) for part in parts] == [True] * (len(parts) - 1) + [False]
    return start, [part["body"] for part in parts]


def answer(content_type: str, body: bytes, *, size: int, status: int = 200) -> list[dict[str, Any]]:
    cut = [body[at : at + size] for at in range(0, len(body), size)]
    length = [(b"content-length", b"%d" % len(body))] if "json" in content_type else []
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [(b"content-type", content_type.encode()), *length],
    }
    last = {"type": "http.response.body", "body": cut[-1]}
    return [start, *({"type": last["type"], "body": part, "more_body": True} for part in cut[:-1]), last]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
async def test_the_response_of_a_stream_becomes_json(subtests: pytest.Subtests, end: str) -> None:
    events = "".join(f"event: message{end}data: {json.dumps(told)}{end}{end}" for told in (NOTIFICATION, RESPONSE))
    for comment in ("", f": ping{end}{end}"):
        for size in (1, 7, 10**6):
            with subtests.test(f"{comment!r} {size}"):
                messages = answer("text/event-stream", (comment + events).encode(), size=size)
                start, parts = await converted("application/json", messages)
                headers = dict(start["headers"])
                assert headers[b"content-type"] == b"application/json"
                assert json.loads(b"".join(parts)) == RESPONSE
                assert (b"content-length" in headers) is not bool(comment), "its length is known unless it has begun"
                assert headers.get(b"content-length", b"%d" % len(parts[-1])) == b"%d" % len(parts[-1])


async def test_json_becomes_one_event(subtests: pytest.Subtests) -> None:
    for size in (1, 7, 10**6):
        with subtests.test(str(size)):
            body = json.dumps(RESPONSE, indent=1).encode()
            start, parts = await converted("text/event-stream", answer("application/json", body, size=size))
            headers = dict(start["headers"])
            assert headers[b"content-type"] == b"text/event-stream"
            assert b"content-length" not in headers
            head, _, told = b"".join(parts).partition(b"data: ")
            assert (head, told[-2:]) == (b"event: message\n", b"\n\n")
            assert b"\n" not in told[:-2]
            assert json.loads(told) == RESPONSE


async def test_other_answers_stay_as_they_are() -> None:
    for accept, content_type, status in (
        ("text/event-stream", "application/json", 404),
        ("text/event-stream", "application/problem+json", 200),
        ("application/json", "application/json", 200),
        ("application/json, text/event-stream", "text/event-stream", 200),
    ):
        messages = answer(content_type, b"x" * 9, size=4, status=status)
        start, parts = await converted(accept, messages)
        assert (start, b"".join(parts)) == (messages[0], b"x" * 9)
