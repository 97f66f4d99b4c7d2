"""Each placeholder is replaced by its encoded value once, whichever encoder wrote it. Nothing else is replaced."""

import json
from typing import Any

import msgspec
import pytest
from pydantic_core import to_json

from recollect_gateway.mcp_endpoint.encoded_parts import EncodedParts

ENCODERS = {
    "json": lambda value: json.dumps(value, separators=(",", ":")).encode(),
    "msgspec": msgspec.json.encode,
    "pydantic": to_json,
}
SAID = {"text": 'a "quoted" ü \\ line\nand more', "list": [1, None, {"encoded": "0" * 32}]}
LOOKALIKE = "encoded:" + "0" * 32


@pytest.fixture
def parts() -> EncodedParts:
    return EncodedParts()


async def sent(parts: EncodedParts, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    came = []

    async def send(message: Any) -> None:
        came.append(message)

    way = parts.put_back_in(send)
    for message in messages:
        await way(message)  # type: ignore[arg-type]
    return came


def body(content: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": content, "more_body": more}


def start(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": 200, "headers": list(headers)}


@pytest.mark.parametrize("encode", ENCODERS.values(), ids=ENCODERS)
async def test_the_placeholders_of_a_text_and_an_object_are_replaced(parts: EncodedParts, encode: Any) -> None:
    encoded = msgspec.json.encode(SAID)
    answer = {"text": parts.text(msgspec.json.encode(SAID["text"])), "object": parts.object(encoded), "more": LOOKALIKE}
    [message] = await sent(parts, body(encode(answer)))
    assert json.loads(message["body"]) == {"text": SAID["text"], "object": SAID, "more": LOOKALIKE}


async def test_a_placeholder_inside_a_replaced_value_is_left_alone(parts: EncodedParts) -> None:
    other = parts.text(b'"other"')
    answer = {"first": parts.text(msgspec.json.encode(other)), "second": other}
    [message] = await sent(parts, body(msgspec.json.encode(answer)))
    assert json.loads(message["body"]) == {"first": other, "second": "other"}


async def test_a_placeholder_is_replaced_once(parts: EncodedParts) -> None:
    content = msgspec.json.encode(parts.text(b'"once"'))
    first, second = await sent(parts, body(content, more=True), body(content))
    assert (first["body"], second["body"]) == (b'"once"', content)
    assert first["more_body"]
    assert not second["more_body"]


async def test_the_content_length_is_that_of_the_replaced_body(parts: EncodedParts) -> None:
    content = msgspec.json.encode(parts.object(msgspec.json.encode(SAID)))
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(content))]
    begun, whole = await sent(parts, start(*headers), body(content))
    assert begun["headers"] == [headers[0], (b"content-length", b"%d" % len(whole["body"]))]
    assert json.loads(whole["body"]) == SAID


async def test_the_start_of_a_stream_is_sent_at_once(parts: EncodedParts) -> None:
    begun = start((b"content-type", b"text/event-stream"))
    assert await sent(parts, begun) == [begun]
