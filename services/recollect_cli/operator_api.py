"""How commands of operators reach the operator API: the one that is named, or the same application in this process."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
import msgspec

from recollect.errors import ErrorCode, InvalidInput, RecollectError, Unavailable
from recollect.settings import Settings
from recollect_cli.gateway import is_here
from recollect_cli.running import run_to_end, without_database

URL, KEY = "RECOLLECT_OPERATOR_URL", "RECOLLECT_OPERATOR_KEY"
TIMEOUT = httpx2.Timeout(60.0, connect=10.0)
PAGE = 200

T = TypeVar("T")


class OperatorApi:
    """The operator API. Every refusal is raised as a RecollectError of one sentence."""

    def __init__(self, client: httpx2.AsyncClient, unavailable: Callable[[str, ErrorCode], RecollectError]) -> None:
        """`unavailable` makes the error of a message and a code, which says where it was looked for."""
        self._client, self._unavailable = client, unavailable

    async def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The answer to one request, sent once; None where there is nothing in it."""
        given = {name: value for name, value in query.items() if value is not None}
        content = None if body is None else msgspec.json.encode(body)
        try:
            answer = await self._client.request(
                method,
                f"/operator/v1{path}",
                content=content,
                params=given,
                headers={"Content-Type": "application/json"} if content else {},
            )
        except httpx2.TransportError as error:
            said = str(error) or type(error).__name__
            told = f"The operator API does not answer ({said})."
            raise self._unavailable(told, ErrorCode.DATABASE_UNAVAILABLE) from error
        if not answer.is_success:
            raise self._refusal(answer)
        return msgspec.json.decode(answer.content) if answer.content else None

    async def all_of(self, path: str, **query: Any) -> list[Any]:
        """Every entry of a list, page by page."""
        found, cursor = [], None
        while True:
            page = await self.ask("GET", path, cursor=cursor, limit=PAGE, **query)
            found += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def _refusal(self, answer: httpx2.Response) -> RecollectError:
        """What it says that refuses (RFC 9457)."""
        try:
            problem: dict[str, Any] = msgspec.json.decode(answer.content, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            problem = {}
        detail = str(problem.get("detail", f"{answer.url} answered {answer.status_code}, which Recollect does not"))
        if answer.status_code == 401:
            return InvalidInput(f"The operator API does not accept the key that {KEY} holds")
        if answer.status_code in (429, 502, 503, 504):
            code = next((code for code in ErrorCode if code == problem.get("code")), Unavailable.default_code)
            return self._unavailable(detail, code)
        if answer.is_client_error:
            return InvalidInput(detail, path=problem.get("path"))
        return RecollectError(detail)


def asked(work: Callable[[OperatorApi], Awaitable[T]]) -> T:
    """What `work` gets of the operator API. Raises InvalidInput, Unavailable."""

    async def run() -> T:
        async with _connected(os.environ.get(URL), os.environ.get(KEY)) as api:
            try:
                return await work(api)
            except RecollectError as error:
                refused = error  # Raised outside: an application's end would wrap it in a group.
        raise refused

    return run_to_end(run())


@asynccontextmanager
async def _connected(url: str | None, key: str | None) -> AsyncIterator[OperatorApi]:
    if url is None:
        async with _within_this_process() as api:
            yield api
        return
    if not key:
        raise InvalidInput(f"An operator's key is needed: {KEY}")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url!r} is no address of an operator API, such as http://127.0.0.1:8788", path=URL)
    base = url.rstrip("/").removesuffix("/operator/v1")
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(
        base_url=base, headers=headers, timeout=TIMEOUT, trust_env=not is_here(base)
    ) as client:
        yield OperatorApi(client, _api_away)


def _api_away(message: str, code: ErrorCode) -> RecollectError:
    return Unavailable(message if code is ErrorCode.BUSY else f"{message} {URL} says where it is.", code=code)


@asynccontextmanager
async def _within_this_process() -> AsyncIterator[OperatorApi]:
    """The same application on the owner's connection, so that there is one way in which things are done."""
    from recollect_operator.app import create_app  # Loads a web server, which who asks one elsewhere needs not.

    app = create_app(Settings(), as_owner=True)
    transport = httpx2.ASGITransport(app)  # type: ignore[arg-type]  # the types of another framework
    async with app.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://operator") as client:
        yield OperatorApi(client, without_database)
