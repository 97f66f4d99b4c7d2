"""How commands call a running gateway: its address, the key, and its refusals as errors."""

import re
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Any

import httpx2
import msgspec
import stamina
import stamina.instrumentation
from cyclopts import Parameter

from recollect.errors import InvalidInput, RecollectError, Unavailable
from recollect.settings import Settings
from recollect_local.address import Endpoint
from recollect_local.data_folder import DataFolder

ATTEMPTS = 8
ATTEMPT_SECONDS = 60.0
"""For how long a request is repeated while the gateway is unreachable or busy: a restart, not an outage."""
LONGEST_WAIT = 10.0
TIMEOUT = httpx2.Timeout(60.0, connect=10.0)

_MCP = re.compile(r"/mcp(/x/[^/]+)?$")

Url = Annotated[
    str | None,
    Parameter(
        env_var="RECOLLECT_URL",
        help="URL of the gateway, such as https://memory.example.com. Default: the local one.",
    ),
]
ApiKey = Annotated[
    str | None, Parameter(env_var="RECOLLECT_API_KEY", help="API key. Default: that of the local gateway.")
]


class GatewayUnavailable(Unavailable):
    """The gateway did not answer, or asked for another try; after `seconds`, if it said when."""

    def __init__(self, message: str, seconds: float | None = None) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """The addresses of the management API and of MCP, and the key for them."""

    url: str
    mcp_url: str
    api_key: str


class Gateway:
    """A gateway's management API. Every refusal is raised as a RecollectError of one sentence."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client
        self._has_answered = False

    def post(self, path: str, content: bytes, *, media_type: str, **query: str) -> bytes:
        """The JSON answer. Repeats the request, which must allow it, while the gateway is unreachable or busy."""
        request = self._client.build_request(
            "POST", path, content=content, params=query, headers={"Content-Type": media_type}
        )
        for attempt in stamina.retry_context(on=self._wait, attempts=ATTEMPTS, timeout=ATTEMPT_SECONDS):
            with attempt, self._answer(request, "application/json") as response:
                return response.read()
        raise AssertionError("stamina either returns or raises")

    def upload(self, path: str, content: Iterable[bytes], *, media_type: str, **query: str) -> bytes:
        """The answer, which is JSON, to a body of any length. Sent once: without an answer it may have arrived."""
        request = self._client.build_request(
            "POST", path, content=content, params=query, headers={"Content-Type": media_type}
        )
        with self._answer(request, "application/json") as response:
            return response.read()

    def send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The answer, which is JSON or nothing, to JSON or nothing. Sent once: without an answer it may be done."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        request = self._client.build_request(method, path, content=body, headers=headers)
        with self._answer(request, "application/json") as response:
            return response.read()

    @contextmanager
    def download(self, path: str, *, media_type: str) -> Iterator[httpx2.Response]:
        """The answer while it arrives; raises Unavailable if it breaks off."""
        with self._answer(self._client.build_request("GET", path), media_type) as response:
            yield response

    @contextmanager
    def _answer(self, request: httpx2.Request, media_type: str) -> Iterator[httpx2.Response]:
        try:
            response = self._client.send(request, stream=True)
            self._has_answered = True
            with closing(response):
                if not response.is_success:
                    response.read()
                    raise refusal(response)
                content_type = response.headers.get("content-type", "").split(";")[0]
                if content_type != media_type and response.status_code != 204:
                    raise InvalidInput(f"{request.url} is not the URL of a Recollect gateway", path="url")
                yield response
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            raise GatewayUnavailable(f"The gateway at {self._client.base_url} does not answer ({reason}).") from error

    def _wait(self, error: Exception) -> bool | float:
        """Whether to try again, or after how many seconds; never where the gateway has not answered before."""
        if not isinstance(error, GatewayUnavailable) or not self._has_answered:
            return False
        return True if error.seconds is None else min(error.seconds, LONGEST_WAIT)


@contextmanager
def connected(url: str | None, api_key: str | None) -> Iterator[Gateway]:
    """The gateway at `url`, else the one that runs on this machine. Raises InvalidInput or Unavailable."""
    stamina.instrumentation.set_on_retry_hooks([])  # They log to stdout, which may receive an export.
    address = find_address(url, api_key, administers=True)
    try:
        client = httpx2.Client(
            base_url=address.url,
            headers={"Authorization": f"Bearer {address.api_key}"},
            timeout=TIMEOUT,
            trust_env=not is_loopback(address.url),
        )
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
        raise InvalidInput(
            f"{url!r} is not the URL of a gateway, such as https://memory.example.com", path="url"
        ) from error
    with client:
        yield Gateway(client)


def find_address(url: str | None, api_key: str | None, *, administers: bool = False) -> GatewayAddress:
    """The addresses to use. The local gateway's keys are for that gateway alone: another gateway needs its own key.

    `administers`: whether to use its key for administration, and not that for agents.
    """
    if url:
        if not api_key:
            raise InvalidInput("An API key is required: set --api-key or RECOLLECT_API_KEY")
        return GatewayAddress(_management_url(url), _mcp_url(url), api_key)
    local = _local_endpoint()
    if local is None:
        raise InvalidInput(
            "No gateway runs on this machine. Start one with `recollect local`; if one runs with --data-dir, set "
            "RECOLLECT_DATA_DIR to that folder. To use another, set --url and --api-key, or RECOLLECT_URL and "
            "RECOLLECT_API_KEY"
        )
    local_key = local.admin_key if administers else local.api_key
    return GatewayAddress(local.management_url, local.mcp_url, api_key or local_key)


def _local_endpoint() -> Endpoint | None:
    try:
        published = (DataFolder(Settings().data_dir).path / "local.json").read_bytes()
        return msgspec.json.decode(published, type=Endpoint)
    except (OSError, msgspec.MsgspecError):
        return None


def _management_url(url: str) -> str:
    """The address of the management API, made from any address of the gateway."""
    base = url.rstrip("/").removesuffix("/mcp").removesuffix("/v1")
    if not base.startswith(("http://", "https://")):
        raise InvalidInput(f"{url!r} is not the URL of a gateway, such as https://memory.example.com", path="url")
    return f"{base}/v1"


def _mcp_url(url: str) -> str:
    """The address of MCP, made from any address of the gateway; a tenant or a toolset in it is kept."""
    base = url.rstrip("/").removesuffix("/v1")
    return base if _MCP.search(base) else f"{base}/mcp"


def is_loopback(url: str) -> bool:
    """Whether the address is this machine's own, to which no proxy leads."""
    host = httpx2.URL(url).host
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refusal(response: httpx2.Response) -> RecollectError:
    """The error of a gateway's refusal; the response has been read."""
    detail = (
        _detail(response.content) or f"{response.url} answered {response.status_code} without an error of Recollect"
    )
    if response.status_code == 401:
        return InvalidInput("The gateway does not accept the API key. Set another with --api-key or RECOLLECT_API_KEY")
    if response.status_code in (429, 502, 503, 504):
        retry_after = response.headers.get("retry-after", "")
        return GatewayUnavailable(detail, float(retry_after) if retry_after.isdecimal() else None)
    if response.status_code == 408:
        return InvalidInput(f"{detail} Write the input to a file first, and import the file")
    return InvalidInput(detail) if response.is_client_error else RecollectError(detail)


def _detail(body: bytes) -> str | None:
    """The `detail` of problem details (RFC 9457)."""
    try:
        problem: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return str(problem["detail"]) if "detail" in problem else None


def body_of(**fields: Any) -> bytes:
    """A request's body as JSON, without the fields that are None."""
    return msgspec.json.encode({name: value for name, value in fields.items() if value is not None})
