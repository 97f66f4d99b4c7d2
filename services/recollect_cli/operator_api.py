"""How commands of operators call the operator API: at its address, or as the same application in this process."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
import msgspec

from recollect.errors import ErrorCode, InvalidInput, RecollectError, Unavailable
from recollect_cli.gateway import is_loopback
from recollect_cli.running import operator_settings, run_to_end, without_database

URL, KEY = "RECOLLECT_OPERATOR_URL", "RECOLLECT_OPERATOR_KEY"
TIMEOUT = httpx2.Timeout(60.0, connect=10.0)
PAGE = 200

T = TypeVar("T")


class OperatorApi:
    """The operator API. Every refusal is raised as a RecollectError of one sentence."""

    def __init__(self, client: httpx2.AsyncClient, unavailable: Callable[[str, ErrorCode], RecollectError]) -> None:
        """`unavailable` makes an error of a message and a code; the error names the setting with the address."""
        self._client, self._unavailable = client, unavailable

    async def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The answer to one request, sent once; None where it is empty."""
        params = {name: value for name, value in query.items() if value is not None}
        content = None if body is None else msgspec.json.encode(body)
        try:
            response = await self._client.request(
                method,
                f"/operator/v1{path}",
                content=content,
                params=params,
                headers={"Content-Type": "application/json"} if content else {},
            )
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            message = f"The operator API does not answer ({reason})."
            raise self._unavailable(message, ErrorCode.DATABASE_UNAVAILABLE) from error
        if not response.is_success:
            raise self._refusal(response)
        return msgspec.json.decode(response.content) if response.content else None

    async def list_all(self, path: str, **query: Any) -> list[Any]:
        """Every entry of a list, page by page."""
        items, cursor = [], None
        while True:
            page = await self.request("GET", path, cursor=cursor, limit=PAGE, **query)
            items += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return items

    def _refusal(self, response: httpx2.Response) -> RecollectError:
        """The error of a refusal (RFC 9457)."""
        try:
            problem: dict[str, Any] = msgspec.json.decode(response.content, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            problem = {}
        detail = str(problem.get("detail", f"{response.url} answered {response.status_code}, not as Recollect does"))
        if response.status_code == 401:
            return InvalidInput(f"The operator API does not accept the key in {KEY}")
        if response.status_code in (429, 502, 503, 504):
            code = next((code for code in ErrorCode if code == problem.get("code")), Unavailable.default_code)
            return self._unavailable(detail, code)
        if response.is_client_error:
            return InvalidInput(detail, path=problem.get("path"))
        return RecollectError(detail)


def with_operator_api(work: Callable[[OperatorApi], Awaitable[T]]) -> T:
    """The result of `work` with the operator API. Raises InvalidInput, Unavailable."""

    async def run() -> T:
        async with _connected(os.environ.get(URL), os.environ.get(KEY)) as api:
            try:
                return await work(api)
            except RecollectError as error:
                refusal = error  # Raised outside the block, whose end would wrap it in a group.
        raise refusal

    return run_to_end(run())


@asynccontextmanager
async def _connected(url: str | None, key: str | None) -> AsyncIterator[OperatorApi]:
    if url is None:
        async with _within_this_process() as api:
            yield api
        return
    if not key:
        raise InvalidInput(f"An operator's key is required: set {KEY}")
    if not url.startswith(("http://", "https://")):
        raise InvalidInput(f"{url!r} is not the URL of an operator API, such as http://127.0.0.1:8788", path=URL)
    base = url.rstrip("/").removesuffix("/operator/v1")
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(
        base_url=base, headers=headers, timeout=TIMEOUT, trust_env=not is_loopback(base)
    ) as client:
        yield OperatorApi(client, _without_api)


def _without_api(message: str, code: ErrorCode) -> RecollectError:
    return Unavailable(message if code is ErrorCode.BUSY else f"{message} Check {URL}.", code=code)


@asynccontextmanager
async def _within_this_process() -> AsyncIterator[OperatorApi]:
    """The same application on the owner's connection, so that every act has one implementation."""
    from recollect_operator.app import create_app  # Loads a web server, which other commands do not need.

    app = create_app(operator_settings(), as_owner=True)
    transport = httpx2.ASGITransport(app)  # type: ignore[arg-type]  # the types of another framework
    async with app.lifespan(), httpx2.AsyncClient(transport=transport, base_url="http://operator") as client:
        yield OperatorApi(client, without_database)
