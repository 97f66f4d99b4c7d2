"""A host of MCP Apps: it frames the page that a tool names, passes results of tools to it, and calls tools for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from mcp import Client
from mcp.client.extension import advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp_types import CallToolResult, TextResourceContents

from tests.support.gateway import MODERN, RunningGateway
from tests.support.web_server import plain, web_server
from tests.verify.browser import Chromium
from tests.verify.node import MODULES

HOST_PAGE = Path(__file__).with_name("app_host.html")
SCHEMAS = MODULES / "@modelcontextprotocol" / "ext-apps" / "dist" / "src" / "generated" / "schema.json"
"""The schemas of messages in the SDK of the extension."""

CAPABLE = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})


@asynccontextmanager
async def app_client(gateway: RunningGateway, key: str) -> AsyncIterator[Client]:
    """The official client, as a host that supports apps."""
    async with (
        gateway.http(key) as http,
        Client(
            streamable_http_client(f"{gateway.url}/mcp", http_client=http), mode=MODERN, extensions=[CAPABLE]
        ) as client,
    ):
        yield client


def policy_of(declared: dict[str, list[str]]) -> str:
    """The policy that a host enforces by the specification, for the declarations of a page."""
    origins = {name: " ".join(declared[name]) or "'none'" for name in ("connectDomains", "frameDomains")}
    resources = " ".join(["'self'", "'unsafe-inline'", *declared["resourceDomains"]])
    return (
        f"default-src 'none'; script-src {resources}; style-src {resources}; img-src 'self' data:; object-src 'none'; "
        f"connect-src {origins['connectDomains']}; frame-src {origins['frameDomains']}; base-uri 'self'"
    )


@dataclass
class AppHost:
    """A framed page in a browser, and a client of its server."""

    page: Chromium
    client: Client

    @classmethod
    @asynccontextmanager
    async def showing(
        cls, page: Chromium, client: Client, uri: str, *, theme: str = "light", may_call: bool = True
    ) -> AsyncIterator["AppHost"]:
        """Frame the page at a URI, and complete the handshake with it."""
        [app] = (await client.read_resource(uri)).contents
        assert isinstance(app, TextResourceContents)
        assert app.mime_type == APP_MIME_TYPE
        policy = policy_of((app.meta or {})["ui"]["csp"])
        documents = {
            "/app": plain(app.text.encode(), "Content-Type: text/html", f"Content-Security-Policy: {policy}"),
            "/": plain(HOST_PAGE.read_bytes(), "Content-Type: text/html"),
        }

        async def answer(head: bytes, writer: Any) -> None:
            await documents[head.split()[1].decode()](head, writer)

        async with web_server(answer) as site:
            await page.open(f"http://127.0.0.1:{site.port}/")
            host = cls(page, client)
            await host.begin(theme, may_call)
            yield host
            requested = [head.split()[1] for head, _ in site.requests]
            assert requested == [b"/", b"/app"], "the page asks for nothing"

    async def begin(self, theme: str, may_call: bool) -> None:
        """Do the handshake of the specification."""
        request = await self.heard("ui/initialize", "McpUiInitializeRequest")
        result = {
            "protocolVersion": request["params"]["protocolVersion"],
            "hostInfo": {"name": "host", "version": "1"},
            "hostCapabilities": {"serverTools": {}} if may_call else {},
            "hostContext": {"theme": theme},
        }
        await self.tell(id=request["id"], result=result)
        await self.heard("ui/notifications/initialized", "McpUiInitializedNotification")
        await self.heard("ui/notifications/size-changed", "McpUiSizeChangedNotification")

    async def show(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool as a model would, and pass the arguments and the result to the page."""
        result = await self.client.call_tool(tool, arguments)
        await self.tell(method="ui/notifications/tool-input", params={"arguments": arguments})
        await self.tell(method="ui/notifications/tool-result", params=as_json(result))
        return result

    async def call_the_requested_tool(self) -> dict[str, Any]:
        """Call the tool that the page requests, and send it the result; returns the name and the arguments."""
        request = await self.heard("tools/call")
        params = request["params"]
        await self.tell(
            id=request["id"], result=as_json(await self.client.call_tool(params["name"], params["arguments"]))
        )
        return {"name": params["name"], **params["arguments"]}

    async def heard(self, method: str, kind: str | None = None) -> dict[str, Any]:
        """The next message with that method, validated by the schema of the extension if `kind` names one."""
        message: dict[str, Any] = await self.page.do("page.evaluate", f"next({method!r})")
        assert message["jsonrpc"] == "2.0"
        if kind:
            schemas = msgspec.json.decode(SCHEMAS.read_bytes())
            content = {key: value for key, value in message.items() if key not in ("jsonrpc", "id")}
            Draft202012Validator(schemas["$defs"][kind]).validate(content)
        return message

    async def tell(self, **message: Any) -> None:
        await self.page.do("page.evaluate", f"tell({msgspec.json.encode(message).decode()})")

    async def see(self, script: str) -> Any:
        """The value of a script in the page."""
        return await self.page.do("frame.evaluate", script)

    async def wait_for(self, selector: str) -> None:
        await self.page.do("frame.waitForSelector", selector)


def as_json(result: CallToolResult) -> dict[str, Any]:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)
