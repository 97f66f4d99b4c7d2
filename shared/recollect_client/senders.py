"""Who sends requests: a sender that blocks, and one for asyncio. The rest of the client is written once for both."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from inspect import isawaitable
from typing import Any, TypeVar

import httpx2
import msgspec

from recollect_client.answers.graphs import Change
from recollect_client.answers.pages import Tagged
from recollect_client.changes import ChangeFeed
from recollect_client.errors import UnexpectedAnswerError
from recollect_client.requests import PagedRequest, Request
from recollect_client.retries import Outcome, Retries, SendAttempt, Sending, Wait, connection_error, refusal

T = TypeVar("T")

Token = str | Callable[[], str]
AsyncToken = str | Callable[[], str | Awaitable[str]]
"""A key or an access token, or what gets a valid one for each attempt."""

STREAM_TIMEOUT = httpx2.Timeout(60.0, connect=10.0)
"""The gateway sends a comment every 15 seconds on a stream on which nothing happens."""

WITHOUT_KEYS_SECONDS = 600.0
"""How long a client does without idempotency keys, where it can, after the gateway had no room for more."""


class Sender:
    """What both senders know: the gateway's address, when to repeat, and whether idempotency keys are used up."""

    def __init__(self, url: str, retries: Retries) -> None:
        self.url = url
        self.retries = retries
        self._without_keys_until = 0.0

    def _sending(self, request: Request[Any]) -> Sending:
        return Sending(request, self.retries, without_key=time.monotonic() < self._without_keys_until)

    def _note(self, sending: Sending) -> None:
        if sending.was_refused_key:
            self._without_keys_until = time.monotonic() + WITHOUT_KEYS_SECONDS


class SyncSender(Sender):
    """Sends requests and waits for the answers."""

    def __init__(self, http: httpx2.Client, url: str, token: Token, retries: Retries) -> None:
        super().__init__(url, retries)
        self.http = http
        self._token = token

    def send(self, request: Request[T]) -> T:
        """Send a request, again where that helps, and return its answer. Raises ApiError or ConnectionError."""
        sending = self._sending(request)
        steps, outcome = sending.steps(), None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return answer_of(request, done.value)
            finally:
                self._note(sending)
            if isinstance(step, Wait):
                time.sleep(step.seconds)
            outcome = self._attempt(request, step) if isinstance(step, SendAttempt) else None

    def pages(self, listing: PagedRequest[T]) -> Iterator[T]:
        """Every item of a list; a page is asked for when it is needed."""
        following: PagedRequest[T] | None = listing
        while following:
            page = self.send(following.request)
            yield from page.items
            following = following.after(page)

    def follow(self, feed: ChangeFeed) -> Iterator[Change]:
        """The changes of a feed, without end: after a lost connection it goes on where it was."""
        while True:
            try:
                yield from self._events(feed)
            except httpx2.TransportError as error:
                feed.failed(connection_error(error))
            time.sleep(feed.next_wait)

    def _events(self, feed: ChangeFeed) -> Iterator[Change]:
        headers = self._authorized(feed.headers())
        with self.http.sse(self.url + feed.path, params=feed.query, headers=headers, timeout=STREAM_TIMEOUT) as events:
            if not events.response.is_success:
                events.response.read()
                return feed.failed(refusal(events.response))
            for event in events:
                if change := feed.take(event):
                    yield change

    def _attempt(self, request: Request[Any], attempt: SendAttempt) -> Outcome:
        headers = self._authorized(attempt.headers)
        try:
            return self.http.request(request.method, self.url + request.path, **_parts(request, headers))
        except httpx2.TransportError as error:
            return connection_error(error)

    def _authorized(self, headers: dict[str, str]) -> dict[str, str]:
        token = self._token if isinstance(self._token, str) else self._token()
        return {**headers, "Authorization": f"Bearer {token}"}


class AsyncSender(Sender):
    """Sends requests and awaits the answers."""

    def __init__(self, http: httpx2.AsyncClient, url: str, token: AsyncToken, retries: Retries) -> None:
        super().__init__(url, retries)
        self.http = http
        self._token = token

    async def send(self, request: Request[T]) -> T:
        """Send a request, again where that helps, and return its answer. Raises ApiError or ConnectionError."""
        sending = self._sending(request)
        steps, outcome = sending.steps(), None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                return answer_of(request, done.value)
            finally:
                self._note(sending)
            if isinstance(step, Wait):
                await asyncio.sleep(step.seconds)
            outcome = await self._attempt(request, step) if isinstance(step, SendAttempt) else None

    async def pages(self, listing: PagedRequest[T]) -> AsyncGenerator[T, None]:
        """Every item of a list; a page is asked for when it is needed."""
        following: PagedRequest[T] | None = listing
        while following:
            page = await self.send(following.request)
            for item in page.items:
                yield item
            following = following.after(page)

    async def follow(self, feed: ChangeFeed) -> AsyncGenerator[Change, None]:
        """The changes of a feed, without end: after a lost connection it goes on where it was."""
        while True:
            try:
                async for change in self._events(feed):
                    yield change
            except httpx2.TransportError as error:
                feed.failed(connection_error(error))
            await asyncio.sleep(feed.next_wait)

    async def _events(self, feed: ChangeFeed) -> AsyncGenerator[Change, None]:
        headers = await self._authorized(feed.headers())
        stream = self.http.sse(self.url + feed.path, params=feed.query, headers=headers, timeout=STREAM_TIMEOUT)
        async with stream as events:
            if not events.response.is_success:
                await events.response.aread()
                feed.failed(refusal(events.response))
                return
            async for event in events:
                if change := feed.take(event):
                    yield change

    async def _attempt(self, request: Request[Any], attempt: SendAttempt) -> Outcome:
        headers = await self._authorized(attempt.headers)
        try:
            return await self.http.request(request.method, self.url + request.path, **_parts(request, headers))
        except httpx2.TransportError as error:
            return connection_error(error)

    async def _authorized(self, headers: dict[str, str]) -> dict[str, str]:
        token = self._token if isinstance(self._token, str) else self._token()
        return {**headers, "Authorization": f"Bearer {await token if isawaitable(token) else token}"}


def _parts(request: Request[Any], headers: dict[str, str]) -> dict[str, Any]:
    content = request.content()
    typed = {} if content is None else {"Content-Type": "application/json"}
    return {"params": request.query, "headers": {**headers, **typed}, "content": content}


def answer_of(request: Request[T], response: httpx2.Response) -> T:
    """The answer in a response, as its type says. Raises UnexpectedAnswerError where it is none."""
    try:
        answer: T = _decoded(request, response)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UnexpectedAnswerError(f"{response.request.url} did not answer as a Recollect gateway: {error}") from error
    if isinstance(answer, Tagged):
        msgspec.structs.force_setattr(answer, "etag", response.headers.get("etag"))
    return answer


def _decoded(request: Request[Any], response: httpx2.Response) -> Any:
    if request.answer is None or not response.content:
        return None
    media_type = response.headers.get("content-type", "").partition(";")[0]
    if request.answer is Any and media_type != "application/json":
        return response.text
    return msgspec.json.decode(response.content, type=request.answer)
