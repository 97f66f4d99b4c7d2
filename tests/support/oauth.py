"""OAuth clients: that of the SDK, with a person who signs in and consents, and one with single requests."""

import asyncio
import base64
import hashlib
import html
import json
import re
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import asyncpg
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl

from tests.support.gateway import MODES, NO_AUTHORITIES, RunningGateway
from tests.support.people import sign_in
from tests.support.web_server import CertificateAuthority, WebServer, plain, web_server

CALLBACK = "http://127.0.0.1:3000/callback"
METADATA: dict[str, Any] = {
    "client_name": "Test client",
    "redirect_uris": [CALLBACK],
    "grant_types": ["authorization_code", "refresh_token"],
}
Fields = Mapping[str, str | Sequence[str]]


@dataclass
class Wallet:
    """The storage of a client between sessions: its tokens, its id, and what it discovered."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None
    server: OAuthMetadata | None = None
    resource: ProtectedResourceMetadata | None = None

    @property
    def current_tokens(self) -> OAuthToken:
        """The tokens of the client, which must have some."""
        assert self.tokens is not None
        return self.tokens

    def make_stale(self) -> None:
        """Without an access token, the client refreshes before the next request.

        Started anew, the SDK's client does not know when a token ends that it has kept.
        """
        assert self.current_tokens.refresh_token
        self.tokens = self.current_tokens.model_copy(update={"access_token": ""})

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class RedirectedPerson(Protocol):
    """A person whom a client redirects to an address, and who returns to that of the client."""

    async def visit(self, url: str) -> str:
        """Open the address, complete the pages, and return the last address."""

    async def bring_back(self) -> AuthorizationCodeResult:
        """What the client is told by the address to which they came."""


def brought_back(landed: str) -> AuthorizationCodeResult:
    """The parameters in the address to which a browser returned."""
    said = {name: values[0] for name, values in parse_qs(urlsplit(landed).query).items()}
    return AuthorizationCodeResult(code=said.get("code", ""), state=said.get("state"), iss=said.get("iss"))


@dataclass
class Visitor:
    """A person at a browser without scripts, whom a client redirects.

    `chosen`: changes to the consent form; `landed`: the address at which the person returned to the client.
    """

    http: httpx2.AsyncClient
    email: str
    chosen: Fields = field(default_factory=lambda: {"decision": "allow"})
    landed: str = ""
    shown: str = ""
    visits: int = 0

    async def visit(self, url: str) -> str:
        """Open a client's address, sign in where that is asked, and submit the consent page; where that leads."""
        self.visits += 1
        parts = urlsplit(url)
        place = f"{parts.path}?{parts.query}"
        answer = await self.http.get(place)
        if answer.status_code == 303 and answer.headers["location"].startswith("/sign-in"):
            await sign_in(self.http, self.email)
            answer = await self.http.get(place)
        if answer.status_code == 200:
            self.shown = answer.text
            answer = await consent(self.http, answer.text, self.chosen)
        assert answer.status_code == 303, answer.text
        self.landed = answer.headers["location"]
        return self.landed

    async def bring_back(self) -> AuthorizationCodeResult:
        return brought_back(self.landed)


async def consent(http: httpx2.AsyncClient, page: str, chosen: Fields) -> httpx2.Response:
    """Submit a consent page as a browser does, with its checked boxes unless `chosen` differs."""
    action = re.search(r'<form method="post" action="([^"]*)"', page)
    assert action, page
    data: dict[str, Any] = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page))
    for kind, name, value in re.findall(r'<input type="(checkbox|radio)" name="(\w+)" value="([^"]*)" checked>', page):
        data[name] = [*data.get(name, []), value] if kind == "checkbox" else value
    origin = {"Origin": str(http.base_url).rstrip("/")}
    return await http.post(html.unescape(action[1]), data={**data, **chosen}, headers=origin)


@asynccontextmanager
async def oauth_client(
    gateway: RunningGateway,
    visitor: RedirectedPerson,
    wallet: Wallet,
    *,
    path: str = "/mcp/x/memory",
    revision: str = "2026-07-28",
    metadata_url: str | None = None,
    callback: str = CALLBACK,
) -> AsyncIterator[Client]:
    """The client of the SDK, connected by its own OAuth flow."""

    async def go(url: str) -> None:
        await visitor.visit(url)

    auth = OAuthClientProvider(
        gateway.url + path,
        OAuthClientMetadata(client_name="Test client", redirect_uris=[AnyUrl(callback)]),
        wallet,
        redirect_handler=go,
        callback_handler=visitor.bring_back,
        client_metadata_url=metadata_url,
    )
    auth.context.oauth_metadata, auth.context.protected_resource_metadata = wallet.server, wallet.resource
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60, verify=NO_AUTHORITIES) as http,
        Client(streamable_http_client(gateway.url + path, http_client=http), mode=MODES[revision]) as client,
    ):
        yield client
        wallet.server, wallet.resource = auth.context.oauth_metadata, auth.context.protected_resource_metadata


@asynccontextmanager
async def client_document(
    authority: CertificateAuthority, path: str = "/oauth/client.json", **changed: Any
) -> AsyncIterator[tuple[str, WebServer]]:
    """The metadata document of a client at its https address on this machine: the client's id, and the site."""
    document: dict[str, Any] = {}

    async def describe(head: bytes, writer: asyncio.StreamWriter) -> None:
        headers = ("Content-Type: application/json", "Cache-Control: max-age=600")
        await plain(json.dumps(document).encode(), *headers)(head, writer)

    async with web_server(describe, tls=authority.serving("localhost")) as site:
        client_id = f"https://localhost:{site.port}{path}"
        document |= METADATA | {"client_id": client_id} | changed
        yield client_id, site


def pkce() -> tuple[str, str]:
    """A verifier and its challenge."""
    verifier = secrets.token_urlsafe(48)
    digest = hashlib.sha256(verifier.encode()).digest()
    return verifier, base64.urlsafe_b64encode(digest).decode().rstrip("=")


@dataclass
class HandClient:
    """A client with single requests, each of which a test can make wrong."""

    gateway: RunningGateway
    http: httpx2.AsyncClient
    id: str
    redirect_uri: str = CALLBACK
    resource: str | None = None
    verifier: str = ""

    @classmethod
    async def register(cls, gateway: RunningGateway, http: httpx2.AsyncClient, **metadata: Any) -> "HandClient":
        answer = await http.post("/oauth/register", json={**METADATA, **metadata})
        assert answer.status_code == 201, answer.text
        return cls(gateway, http, answer.json()["client_id"], answer.json()["redirect_uris"][0])

    def request(self, **changed: str | None) -> str:
        """The authorization address of this client; parameters that are None are left out."""
        self.verifier, challenge = pkce()
        asked = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": self.redirect_uri,
            "scope": "memory:read memory:write",
            "state": "the state",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "resource": self.resource or f"{self.gateway.url}/mcp",
        }
        given = {name: value for name, value in {**asked, **changed}.items() if value is not None}
        return f"{self.gateway.url}/oauth/authorize?{httpx2.QueryParams(given)}"

    async def code(self, visitor: Visitor, **changed: str | None) -> str:
        """A code from the visitor's consent."""
        landed = parse_qs(urlsplit(await visitor.visit(self.request(**changed))).query)
        assert "code" in landed, landed
        return landed["code"][0]

    async def redeem(self, code: str, **changed: str | None) -> httpx2.Response:
        """Exchange a code for tokens."""
        return await self.token(
            grant_type="authorization_code",
            code=code,
            redirect_uri=changed.pop("redirect_uri", self.redirect_uri),
            code_verifier=changed.pop("code_verifier", self.verifier),
            **changed,
        )

    async def refresh(self, token: str, **changed: str | None) -> httpx2.Response:
        """Exchange a refresh token for new tokens."""
        return await self.token(grant_type="refresh_token", refresh_token=token, **changed)

    async def token(self, **parameters: str | None) -> httpx2.Response:
        """Send a request to the token endpoint."""
        given = {"client_id": self.id, **parameters}
        return await self.http.post("/oauth/token", data={name: value for name, value in given.items() if value})

    async def tokens(self, visitor: Visitor, **changed: str | None) -> dict[str, Any]:
        """Tokens for the scopes that the visitor grants."""
        answer = await self.redeem(await self.code(visitor, **changed))
        assert answer.status_code == 200, answer.text
        issued: dict[str, Any] = answer.json()
        return issued


async def granted(owner: asyncpg.Connection, tenant_id: UUID, person_id: UUID | str) -> UUID:
    """Store a grant of a member, and return its id."""
    grant_id: UUID = await owner.fetchval(
        """INSERT INTO oauth_grants (tenant_id, id, person_id, client_id, client_name, scopes, resource, created_by,
            expires_at)
        VALUES ($1, gen_random_uuid(), $2, 'https://client.example.com/x', 'Client', '{memory:read}',
            'https://memory.example.com/mcp', 'person', now() + interval '1 hour')
        RETURNING id""",
        tenant_id,
        person_id,
    )
    return grant_id
