"""The client of all measurements: JSON-RPC on a kept-alive HTTP connection, with almost no cost of its own.

It sends the same requests as the official client, and reads both forms of reply (JSON, or one SSE event). Requests are
encoded before the clock starts, and replies are decoded after it has stopped.
"""

import asyncio
import itertools
import time
from dataclasses import dataclass
from typing import Any, Self

import msgspec
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from recollect.errors import ErrorCode
from recollect_gateway.mcp_endpoint.errors import ERROR_META

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
REVISIONS = (LEGACY, MODERN)

_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its reply: `seconds` from the first sent byte to the last received one, and the raw `body`."""

    seconds: float
    body: bytes

    def is_refused(self) -> bool:
        """Whether a tool refused its arguments."""
        error = self._decoded().get("result", {}).get("_meta", {}).get(ERROR_META, {})
        return bool(error.get("code") == ErrorCode.INVALID_INPUT)

    def result(self) -> dict[str, Any]:
        """The JSON-RPC result; raises RuntimeError if it is an error, including one of a tool."""
        reply = self._decoded()
        if "result" not in reply or reply["result"].get("isError"):
            raise RuntimeError(f"a measured call failed: {self.body[:1000]!r}")
        result: dict[str, Any] = reply["result"]
        return result

    def _decoded(self) -> dict[str, Any]:
        event = next((line[6:] for line in self.body.splitlines() if line.startswith(b"data: {")), self.body)
        reply: dict[str, Any] = msgspec.json.decode(event)
        return reply


class McpConnection:
    """A connection to one MCP address (host, port and path)."""

    def __init__(self, port: int, path: str, revision: str, key: str = "") -> None:
        self._port, self._path, self._revision, self._key = port, path, revision, key

    async def __aenter__(self) -> Self:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def call(self, tool: str, arguments: dict[str, Any]) -> Exchange:
        """Call a tool."""
        request = self._request(tool, arguments)
        start = time.perf_counter()
        self._writer.write(request)
        body = await self._reply()
        return Exchange(time.perf_counter() - start, body)

    def _request(self, tool: str, arguments: dict[str, Any]) -> bytes:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if self._revision == MODERN:
            params["_meta"] = {PROTOCOL_VERSION_META_KEY: MODERN, CLIENT_CAPABILITIES_META_KEY: {}}
        rpc = {"jsonrpc": "2.0", "id": next(_ids), "method": "tools/call", "params": params}
        body = msgspec.json.encode(rpc)
        lines = [
            f"POST {self._path} HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            f"Authorization: Bearer {self._key}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {self._revision}",
            "Mcp-Method: tools/call",
            f"Mcp-Name: {tool}",
            f"Content-Length: {len(body)}",
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body

    async def _reply(self) -> bytes:
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"a measured call failed: {head!r}")
        _, _, length = head.partition(b"\r\ncontent-length:")
        if length:
            return await self._reader.readexactly(int(length.split(b"\r\n", 1)[0]))
        return b"".join([chunk async for chunk in self._chunks()])

    async def _chunks(self) -> Any:
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)
