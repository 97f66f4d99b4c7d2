"""The SDK `mcp` 2.x, by its default mode: it finds out by itself what revision the server speaks."""

import asyncio

import httpx2
from errand import CALLBACK, Errand, errand, tell
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl


class Wallet:
    """A storage for one session."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def auth_of(own: Errand) -> OAuthClientProvider | None:
    """The SDK's own OAuth flow, where there is no key."""
    if own.key:
        return None
    said: dict[str, str] = {}

    async def go(url: str) -> None:
        said.update(own.visit(url))

    async def back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))

    metadata = OAuthClientMetadata(client_name="SDK 2", redirect_uris=[AnyUrl(CALLBACK)])
    return OAuthClientProvider(own.url, metadata, Wallet(), redirect_handler=go, callback_handler=back)


async def main() -> None:
    own = errand()
    async with (
        httpx2.AsyncClient(headers=own.headers, auth=auth_of(own), timeout=60) as http,
        Client(streamable_http_client(own.url, http_client=http)) as client,
    ):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        answers = [await client.call_tool(name, arguments) for name, arguments in own.calls]
        tell(tools, [answer.content[0].text for answer in answers])


asyncio.run(main())
