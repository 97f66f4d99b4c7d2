"""An identity provider on loopback: discovery, rotating keys, codes, and tokens, each of which a test can make wrong.

It shares no code with Recollect: it signs what a test sets, and checks what a provider would check.
"""

import asyncio
import base64
import hashlib
import hmac
import html
import json
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx2
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from tests.support.people import send_form
from tests.support.web_server import Answering, WebServer, plain, web_server

CLIENT_ID = "recollect"
CLIENT_SECRET = "kept between the two"


@cache
def _rsa(number: int) -> RSAKey:
    """A key, generated when a provider first needs it: every process of a run imports this module."""
    return RSAKey.generate_key(2048, {"kid": f"rsa-{number}"}, private=True)


@dataclass
class Account:
    """An account at the provider."""

    subject: str = field(default_factory=lambda: f"subject-{secrets.token_hex(8)}")
    email: str = "nobody@example.com"
    email_verified: Any = True
    name: str = "Grace"


@dataclass
class IdentityProviderServer:
    """A listening provider. Tests set `claims`, `header` and other attributes to make its tokens wrong.

    With `userinfo`, the identity claims are at its userinfo endpoint, changed by that, and not in ID tokens.
    """

    server: WebServer
    account: Account = field(default_factory=Account)
    keys: list[Any] = field(default_factory=lambda: [_rsa(0)])
    signs_with: Any = field(default_factory=lambda: _rsa(0))
    algorithm: str = "RS256"
    claims: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    token: str | None = None
    answers: dict[str, Answering] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    secret: str = CLIENT_SECRET.replace(" ", "-")

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def rotate(self) -> None:
        """Sign by another key from now on, and publish only that."""
        self.keys, self.signs_with = [_rsa(1)], _rsa(1)

    def request_count(self, path: str) -> int:
        """How often an address was requested."""
        return sum(head.startswith((f"get {path} ", f"post {path} ")) for head in self.server.heads())

    def authorize(self, url: str) -> str:
        """Sign in at the provider as a browser does, and return the address to which it redirects."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{httpx2.QueryParams({'code': code, 'state': asked['state']})}"

    def signed(self, claims: dict[str, Any], **header: Any) -> str:
        """A token of these claims."""
        said = {"alg": self.algorithm, "kid": self.signs_with.kid, **header}
        told = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(told, claims, self.signs_with, algorithms=[told["alg"]])

    def id_token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": self.account.subject,
            "aud": asked["client_id"],
            "exp": now + 300,
            "iat": now,
            "nonce": asked["nonce"],
            **(self._description() if self.userinfo is None else {}),
        }
        told = {name: value for name, value in {**claims, **self.claims}.items() if value is not None}
        return self.signed(told)

    def _description(self) -> dict[str, Any]:
        account = self.account
        return {"email": account.email, "email_verified": account.email_verified, "name": account.name}

    async def answer(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        path = head.split(b" ", 2)[1].decode()
        if path in self.answers:
            return await self.answers[path](head, writer)
        if path == "/.well-known/openid-configuration":
            return await _json(self._metadata(), head, writer)
        if path == "/jwks":
            keys = [{**key.as_dict(private=False), "use": "sig"} for key in self.keys]
            return await _json({"keys": keys}, head, writer)
        if path == "/userinfo" and self.userinfo is not None and b"bearer opaque" in head.lower():
            return await _json({"sub": self.account.subject, **self._description(), **self.userinfo}, head, writer)
        if path == "/token":
            return await self._token(head, writer)
        return await plain(b"", status="404 Not Found")(head, writer)

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            **self.metadata,
        }

    async def _token(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        asked = self._redeemed(head, self.server.requests[-1][1].decode())
        if asked is None:
            return await plain(b'{"error": "invalid_grant"}', status="400 Bad Request")(head, writer)
        token = self.token or self.id_token(asked)
        return await _json({"access_token": "opaque", "token_type": "Bearer", "id_token": token}, head, writer)

    def _redeemed(self, head: bytes, body: str) -> dict[str, str] | None:
        """What a code stands for: a client with the right verifier gets it once."""
        told = {name: values[0] for name, values in parse_qs(body).items()}
        basic = re.search(rb"(?i)authorization: basic (\S+)", head)
        client = base64.b64decode(basic[1]).decode() if basic else ""
        asked = self.codes.pop(told.get("code", ""), None)
        if asked is None or unquote(client) != f"{asked['client_id']}:{self.secret}":
            return None
        digest = hashlib.sha256(told.get("code_verifier", "").encode()).digest()
        challenge = _base64(digest)
        bound = asked["code_challenge"] == challenge and asked["redirect_uri"] == told.get("redirect_uri")
        return asked if bound else None


@asynccontextmanager
async def identity_provider(*, host: str = "127.0.0.1") -> AsyncIterator[IdentityProviderServer]:
    """A provider, for as long as the context lasts."""
    made: list[IdentityProviderServer] = []

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        await made[0].answer(head, writer)

    async with web_server(answer, host=host) as server:
        made.append(IdentityProviderServer(server))
        yield made[0]


Forge = Callable[[IdentityProviderServer, str], str]
"""Changes a token of a provider into another one."""


def unsigned(_: IdentityProviderServer, token: str) -> str:
    """The same claims under `alg: none`."""
    header = _base64(b'{"alg":"none"}')
    return f"{header}.{token.split('.')[1]}."


def signed_by_public_key(provider: IdentityProviderServer, token: str) -> str:
    """The same claims under HS256, with the provider's public key as the secret."""
    header = _base64(json.dumps({"alg": "HS256", "kid": provider.signs_with.kid}).encode())
    signed = f"{header}.{token.split('.')[1]}"
    return f"{signed}.{_base64(hmac.digest(provider.keys[0].as_pem(private=False), signed.encode(), 'sha256'))}"


def signed_by_stranger(_: IdentityProviderServer, token: str) -> str:
    """The same claims, signed by another key under the id of the provider's key."""
    forged = RSAKey.generate_key(2048, {"kid": "rsa-0"}, private=True)
    return jwt.encode({"alg": "RS256", "kid": "rsa-0"}, claims_of(token), forged, algorithms=["RS256"])


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a token, unverified."""
    part = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


def elliptic_key() -> ECKey:
    """A key for ES256."""
    return ECKey.generate_key("P-256", {"kid": "ec"}, private=True)


async def to_provider(http: httpx2.AsyncClient, path: str, **fields: str) -> str:
    """Open one of our pages, press the button of a provider, and return the address to which it leads."""
    shown = await http.get(path)
    assert shown.status_code == 200, shown.text
    forms = re.findall(r'<form method="post" action="/sign-in/provider">(.*?)</form>', shown.text, re.DOTALL)
    assert forms, shown.text
    answer = await send_form(http, forms[0], "/sign-in/provider", **fields)
    assert answer.status_code == 200, answer.text
    link = re.search(r'<a id="provider" href="([^"]*)"', answer.text)
    assert link, answer.text
    return html.unescape(link[1])


async def sign_in_by(http: httpx2.AsyncClient, provider: IdentityProviderServer, path: str) -> httpx2.Response:
    """Sign in by a provider, from our page and back, and return the last answer."""
    landed = provider.authorize(await to_provider(http, path))
    return await http.get(landed)


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


async def _json(content: Any, head: bytes, writer: asyncio.StreamWriter) -> None:
    await plain(json.dumps(content).encode(), "Content-Type: application/json")(head, writer)
