"""Language models behind any server that speaks OpenAI's `POST /v1/chat/completions`: one question, one JSON answer.

The answer is asked for by a JSON schema. A server that refuses that is asked for any JSON object, then for text. Time,
length and tokens of the answer are bounded; the model is offered nothing that it could call.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

import httpx2
import msgspec
from msgspec import Meta, Struct

from recollect.errors import ErrorCode, Unavailable
from recollect.outbound.http_client import Outbound, OutboundFailed, OutboundResponse
from recollect.outbound.retry_after import seconds_until

MAX_ANSWER_BYTES = 256 * 1024
"""Longest answer that is read, in bytes."""

_REFUSALS = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}
_OF_REQUEST = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.NOT_IMPLEMENTED,
}
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\A\s*```(?:json)?\s*(.*?)\s*```\s*\Z", re.DOTALL)


class Cause(StrEnum):
    """The cause of a failure.

    AWAY: the server fails for any request, for now. REFUSED: it refuses the key, or has no such model or address.
    REQUEST: it refuses this request, such as one that is too long. ANSWER: what it answered cannot be used.
    """

    AWAY = "away"
    REFUSED = "refused"
    REQUEST = "request"
    ANSWER = "answer"


class ModelFailed(Unavailable):
    """A language model gave no usable answer. `retry_after`: seconds after which it may be asked again, if it said so.

    `requests`: how many were sent. The message has nothing of what was asked or answered.
    """

    default_code = ErrorCode.MODEL_UNAVAILABLE

    def __init__(self, reason: str, cause: Cause, *, retry_after: float | None = None) -> None:
        is_unusable = cause in (Cause.REQUEST, Cause.ANSWER)
        super().__init__(f"The language model {reason}.", code=ErrorCode.MODEL_ANSWER_UNUSABLE if is_unusable else None)
        self.cause, self.retry_after = cause, retry_after
        self.requests = 1


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A language model: the base address of its server, its name there, and the key."""

    url: str
    name: str
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """What a model is asked: the instructions, the data, and the JSON schema of the answer with its name."""

    instructions: str
    data: str
    schema_name: str
    schema: dict[str, Any] = field(repr=False)
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer: its text, which may be anything, and the tokens that both took, as the server says.

    `form`: the number of the form of requests that the server accepted; `requests`: how many it took to find it.
    """

    text: str
    tokens: int
    form: int
    requests: int


Send = Callable[[str, bytes, Mapping[str, str], float], Awaitable[OutboundResponse]]
"""Sends a POST to an address: its body, its headers, and the seconds for the whole answer."""


async def send_directly(url: str, content: bytes, headers: Mapping[str, str], seconds: float) -> OutboundResponse:
    """Send to an address that the operator chose, which may be in a private network. Raises ModelFailed."""
    # Errors are raised without the client's exceptions, whose texts hold the address and any password in it.
    try:
        async with (
            httpx2.AsyncClient(timeout=seconds) as client,
            client.stream("POST", url, content=content, headers=headers) as response,
        ):
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > MAX_ANSWER_BYTES:
                    raise ModelFailed(f"answered with more than {MAX_ANSWER_BYTES} bytes", Cause.ANSWER)
            return OutboundResponse(response.status_code, response.headers, bytes(body))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ModelFailed(f"cannot be reached ({type(error).__name__})", Cause.AWAY) from None


def guarded_sender(outbound: Outbound, tenant_id: UUID) -> Send:
    """Sends to addresses that a tenant chose: to the public internet only, within the tenant's share of requests.

    What it returns raises ModelFailed where there is no usable answer.
    """

    async def send(url: str, content: bytes, headers: Mapping[str, str], seconds: float) -> OutboundResponse:
        try:
            return await outbound.post(
                url, content, on_behalf_of=tenant_id, headers=headers, max_bytes=MAX_ANSWER_BYTES, seconds=seconds
            )
        except OutboundFailed:
            raise ModelFailed("gave no usable answer, or its address may not be reached", Cause.AWAY) from None

    return send


async def complete(
    send: Send, model: LanguageModel, question: ChatPrompt, *, seconds: float, form: int = 0
) -> Completion:
    """The model's answer. `form`: the form of requests to begin with; `seconds`: for all requests together.

    Raises ModelFailed.
    """
    forms = _forms(question)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if model.api_key is not None:
        headers["Authorization"] = f"Bearer {model.api_key}"
    url = f"{model.url.rstrip('/')}/chat/completions"
    requests = 0
    try:
        async with asyncio.timeout(seconds):
            for number in range(form, len(forms)):
                requests += 1
                answer = await send(url, _body(model, question, forms[number]), headers, seconds)
                if answer.status not in _OF_REQUEST:
                    break
        text, tokens = _read(answer)
    except TimeoutError:
        failure = ModelFailed(f"did not answer within {seconds:g} s", Cause.AWAY)
    except ModelFailed as error:
        failure = error
    else:
        return Completion(text, tokens, number, requests)
    failure.requests = max(requests, 1)
    raise failure from None


def json_of(text: str) -> str:
    """The JSON in an answer, without thoughts before it and without a fence of Markdown around it."""
    text = _THOUGHTS.sub("", text, count=1)
    fenced = _FENCED.match(text)
    return fenced[1] if fenced else text


def _forms(question: ChatPrompt) -> tuple[dict[str, Any], ...]:
    """The forms of a request, the strictest first; servers and models differ in what they accept."""
    schema = {"name": question.schema_name, "schema": question.schema, "strict": True}
    by_schema = {"response_format": {"type": "json_schema", "json_schema": schema}}
    bounded = {"temperature": 0, "max_tokens": question.max_tokens}
    return (
        by_schema | bounded,
        by_schema | {"max_completion_tokens": question.max_tokens},  # For models that reason before they answer.
        {"response_format": {"type": "json_object"}} | bounded,
        bounded,
    )


def _body(model: LanguageModel, question: ChatPrompt, form: dict[str, Any]) -> bytes:
    messages = [
        {"role": "system", "content": question.instructions},
        {"role": "user", "content": question.data},
    ]
    return msgspec.json.encode({"model": model.name, "messages": messages, **form})


class _Message(Struct):
    content: str | None = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(Struct):
    total_tokens: Annotated[int, Meta(ge=0, le=10**9)] = 0


class _Reply(Struct):
    choices: Annotated[list[_Choice], Meta(min_length=1, max_length=16)]
    usage: _Usage | None = None


def _read(answer: OutboundResponse) -> tuple[str, int]:
    if answer.status != HTTPStatus.OK:
        raise _refusal(answer)
    try:
        reply = msgspec.json.decode(answer.body, type=_Reply)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise ModelFailed("answered with something that is not a completion", Cause.ANSWER) from None
    choice = reply.choices[0]
    if choice.finish_reason == "length":
        raise ModelFailed("was cut off in the middle of its answer", Cause.ANSWER)
    if choice.message.content is None:
        raise ModelFailed("answered without a text", Cause.ANSWER)
    return choice.message.content, reply.usage.total_tokens if reply.usage else 0


def _refusal(answer: OutboundResponse) -> ModelFailed:
    cause = (
        Cause.REFUSED if answer.status in _REFUSALS else Cause.REQUEST if answer.status in _OF_REQUEST else Cause.AWAY
    )
    return ModelFailed(
        f"answered HTTP {answer.status}", cause, retry_after=seconds_until(answer.headers.get("retry-after"))
    )
