"""Sessions of the SDK `mcp` 1.x, which other clients build upon: with a key, or by signing in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from errand import CALLBACK, Errand
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamablehttp_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken


class Wallet(TokenStorage):
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


def auth_of(errand: Errand) -> httpx.Auth | None:
    """The SDK's own OAuth flow, where there is no key."""
    if errand.key:
        return None
    said: dict[str, str] = {}

    async def go(url: str) -> None:
        said.update(errand.visit(url))

    async def back() -> tuple[str, str | None]:
        return said["code"], said.get("state")

    metadata = OAuthClientMetadata(
        client_name="SDK 1", redirect_uris=[CALLBACK], grant_types=["authorization_code", "refresh_token"]
    )
    return OAuthClientProvider(errand.url, metadata, Wallet(), redirect_handler=go, callback_handler=back)


@asynccontextmanager
async def session(errand: Errand) -> AsyncIterator[ClientSession]:
    """A session with the address of the errand."""
    async with (
        streamablehttp_client(errand.url, headers=errand.headers, auth=auth_of(errand)) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session
