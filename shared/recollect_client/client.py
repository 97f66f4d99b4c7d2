"""The two clients: `Recollect`, which blocks, and `AsyncRecollect`, for asyncio. They have the same methods."""

import copy
import os
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from types import TracebackType
from typing import Self, TypeVar

import httpx2

from recollect_client.errors import ConfigurationError
from recollect_client.graphs import GraphOperations
from recollect_client.retries import Retries
from recollect_client.senders import AsyncSender, SyncSender
from recollect_client.tenants import TenantOperations
from recollect_client.version import __version__

T = TypeVar("T")

TIMEOUT = httpx2.Timeout(60.0, connect=10.0)
USER_AGENT = f"recollect-client-python/{__version__}"
DEFAULT_GRAPH = "default"


class Recollect(SyncSender, GraphOperations, TenantOperations):
    """A client that blocks until an answer has come.

    `url` of the gateway (else `RECOLLECT_URL`), and an `api_key` (else `RECOLLECT_API_KEY`) or an OAuth access token: a
    text, or a function that returns a valid one, which is called for each request. The tenant is that of the key or
    token; `graph` is the graph of all calls that name no other.

    `http`: an HTTP client with proxies, certificates or timeouts of your own; else `timeout` in seconds.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        access_token: str | Callable[[], str] | None = None,
        graph: str = DEFAULT_GRAPH,
        retries: Retries | None = None,
        timeout: float | httpx2.Timeout = TIMEOUT,
        http: httpx2.Client | None = None,
    ) -> None:
        url, token = gateway_url(url), credential(api_key, access_token)
        http = http or httpx2.Client(
            timeout=timeout, headers={"User-Agent": USER_AGENT}, trust_env=not is_loopback(url)
        )
        super().__init__(http, url, token, retries or Retries())
        self.default_graph = graph

    def graph(self, name: str) -> Self:
        """This client with another graph. It has the same connections, which close together."""
        return in_graph(self, name)

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncRecollect(AsyncSender, GraphOperations, TenantOperations):
    """A client for asyncio; as `Recollect` otherwise, whose methods it has, to be awaited.

    A function for `access_token` may be a coroutine function.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        access_token: str | Callable[[], str | Awaitable[str]] | None = None,
        graph: str = DEFAULT_GRAPH,
        retries: Retries | None = None,
        timeout: float | httpx2.Timeout = TIMEOUT,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        url, token = gateway_url(url), credential(api_key, access_token)
        http = http or httpx2.AsyncClient(
            timeout=timeout, headers={"User-Agent": USER_AGENT}, trust_env=not is_loopback(url)
        )
        super().__init__(http, url, token, retries or Retries())
        self.default_graph = graph

    def graph(self, name: str) -> Self:
        """This client with another graph. It has the same connections, which close together."""
        return in_graph(self, name)

    async def close(self) -> None:
        """Close the connections."""
        await self.http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


C = TypeVar("C", bound=GraphOperations)


def in_graph(client: C, name: str) -> C:
    """The same client with another graph."""
    other = copy.copy(client)
    other.default_graph = name
    return other


def gateway_url(url: str | None) -> str:
    """The address of the gateway, made from any address of it, such as that for MCP. Raises ConfigurationError."""
    url = url or os.environ.get("RECOLLECT_URL")
    if not url:
        raise ConfigurationError("A URL is required: give `url`, or set RECOLLECT_URL")
    base = url.rstrip("/").removesuffix("/mcp").removesuffix("/v1")
    try:
        is_known = httpx2.URL(base).scheme in ("http", "https") and httpx2.URL(base).host != ""
    except (httpx2.InvalidURL, UnicodeError):
        is_known = False
    if not is_known:
        raise ConfigurationError(f"{url!r} is not the URL of a gateway, such as https://memory.example.com")
    return base


def credential(api_key: str | None, access_token: str | T | None) -> str | T:
    """The key or token, else that of the environment. Raises ConfigurationError for both, or none."""
    if api_key and access_token:
        raise ConfigurationError("Give `api_key` or `access_token`, not both")
    token = access_token or api_key or os.environ.get("RECOLLECT_API_KEY")
    if not token:
        raise ConfigurationError("A credential is required: give `api_key` or `access_token`, or set RECOLLECT_API_KEY")
    return token


def is_loopback(url: str) -> bool:
    """Whether the address is this machine's own, to which no proxy leads."""
    host = httpx2.URL(url).host
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
