"""The protocol of a sign-in by OpenID Connect, by Authlib's client: code flow with PKCE (S256) and a nonce.

Authlib makes each request and validates each response; only `recollect.outbound` sends requests.
"""

from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import structlog
from authlib.oauth2.client import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc.errors import JoseError
from msgspec import Struct

from recollect.accounts.identity_providers.model import (
    ProvenIdentity,
    Registration,
    SignInRefused,
    SignInSecrets,
    proven_identity,
)
from recollect.accounts.token_issuers import LEEWAY_SECONDS, Issuer, IssuerFailed, Issuers, TokenRefused, decoded
from recollect.outbound.http_client import Outbound, OutboundFailed

SCOPE = "openid email profile"
UNAVAILABLE = "Your identity provider cannot be reached now, or is not set up correctly. Try again, or tell an admin."
NOT_PROVEN = "Your identity provider did not prove who you are. Try again, or tell an admin."

T = TypeVar("T")

log = structlog.get_logger(__name__)


class ProviderTokens(Struct, frozen=True):
    """The response of a token endpoint to a code: the fields that we use."""

    id_token: str
    access_token: str = ""


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request to a token endpoint, ready to be sent."""

    url: str
    headers: dict[str, str]
    body: str


class _Client(OAuth2Client):
    """Authlib's client, changed to return requests instead of sending them."""

    def _fetch_token(self, url: str, *, body: str, headers: Any, auth: Any, method: str, **_: Any) -> TokenRequest:
        url, prepared, body = auth.prepare(method, url, dict(headers), body)
        return TokenRequest(url, prepared, body)


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The relying party of OpenID Connect: it sends browsers to providers, and identifies the people who come back."""

    issuers: Issuers
    outbound: Outbound

    async def authorization_url(
        self, tenant_id: UUID, registration: Registration, secrets: SignInSecrets, redirect_uri: str
    ) -> str:
        """The address to which to send a browser. Raises SignInRefused if the provider cannot be reached."""
        issuer = await self._issuer(tenant_id, registration)
        client = _client(registration, issuer, redirect_uri)
        url, _ = client.create_authorization_url(
            issuer.metadata.authorization_endpoint,
            state=secrets.state,
            nonce=secrets.nonce,
            code_verifier=secrets.code_verifier,
        )
        return str(url)

    async def identity(
        self, tenant_id: UUID, registration: Registration, secrets: SignInSecrets, code: str, redirect_uri: str
    ) -> ProvenIdentity:
        """The identity of the person who came back with this code. Raises SignInRefused."""
        issuer = await self._issuer(tenant_id, registration)
        tokens = await self._tokens(tenant_id, registration, issuer, secrets, code, redirect_uri)
        try:
            id_token, algorithm = tokens.id_token, registration.algorithm
            verified = await self.issuers.verified(tenant_id, registration.issuer, id_token, algorithm)
            claims = _validated(registration, verified.header, verified.claims, secrets.nonce)
        except (TokenRefused, IssuerFailed, JoseError, ValueError, TypeError) as error:
            _log_failure(tenant_id, registration, f"ID token: {error}")
            raise SignInRefused(NOT_PROVEN) from None
        if "email" not in claims and issuer.metadata.userinfo_endpoint is not None:
            claims |= await self._userinfo_claims(
                tenant_id, registration, issuer.metadata.userinfo_endpoint, tokens.access_token, claims["sub"]
            )
        return proven_identity(claims)

    async def _userinfo_claims(
        self, tenant_id: UUID, registration: Registration, userinfo: str, access_token: str, subject: Any
    ) -> dict[str, Any]:
        """The userinfo of a subject whose ID token has no address (OpenID Connect Core, 5.3 and 5.4).

        Raises SignInRefused, also if the response is about another subject.
        """
        headers = {"Authorization": f"Bearer {access_token}"}
        try:
            response = await self.outbound.get(userinfo, on_behalf_of=tenant_id, headers=headers)
        except OutboundFailed:
            raise SignInRefused(UNAVAILABLE) from None
        claims = decoded(response.body, dict[str, Any]) if response.status == 200 else None
        if claims is None or claims.get("sub") != subject:
            reason = f"its userinfo endpoint answered {response.status}, or about another subject"
            _log_failure(tenant_id, registration, reason)
            raise SignInRefused(NOT_PROVEN)
        return {name: claims.get(name) for name in ("email", "email_verified", "name")}

    async def _issuer(self, tenant_id: UUID, registration: Registration) -> Issuer:
        try:
            issuer = await self.issuers.issuer(tenant_id, registration.issuer)
            if issuer.metadata.authorization_endpoint is None or issuer.metadata.token_endpoint is None:
                raise IssuerFailed("It names no authorization_endpoint, or no token_endpoint.")
            return issuer
        except IssuerFailed as error:
            _log_failure(tenant_id, registration, str(error))
            raise SignInRefused(UNAVAILABLE) from None

    async def _tokens(
        self,
        tenant_id: UUID,
        registration: Registration,
        issuer: Issuer,
        secrets: SignInSecrets,
        code: str,
        redirect_uri: str,
    ) -> ProviderTokens:
        request = _client(registration, issuer, redirect_uri).fetch_token(
            issuer.metadata.token_endpoint,
            grant_type="authorization_code",
            code=code,
            code_verifier=secrets.code_verifier,
        )
        try:
            response = await self.outbound.post(
                request.url, request.body.encode(), on_behalf_of=tenant_id, headers=request.headers
            )
        except OutboundFailed:
            raise SignInRefused(UNAVAILABLE) from None
        tokens = decoded(response.body, ProviderTokens) if response.status == 200 else None
        if tokens is None:
            _log_failure(tenant_id, registration, f"its token endpoint answered {response.status} without an ID token")
            raise SignInRefused(NOT_PROVEN)
        return tokens


def _client(registration: Registration, issuer: Issuer, redirect_uri: str) -> _Client:
    methods = issuer.metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
    return _Client(
        None,
        registration.client_id,
        registration.client_secret,
        token_endpoint_auth_method=next(
            (method for method in ("client_secret_basic", "client_secret_post") if method in methods),
            "client_secret_basic",
        ),
        scope=SCOPE,
        redirect_uri=redirect_uri,
        code_challenge_method="S256",
    )


def _validated(
    registration: Registration, header: dict[str, Any], claims: dict[str, Any], nonce: str
) -> dict[str, Any]:
    """The claims, if they are for us and valid now (OpenID Connect Core, 3.1.3.7). Raises JoseError."""
    options = {
        "iss": {"essential": True, "value": registration.issuer},
        "aud": {"essential": True, "value": registration.client_id},
        "sub": {"essential": True},
    }
    token = CodeIDToken(claims, header, options, {"nonce": nonce, "client_id": registration.client_id})
    token.validate(leeway=LEEWAY_SECONDS)
    return claims


def _log_failure(tenant_id: UUID, registration: Registration, reason: str) -> None:
    """Log the reason for operators; the person does not see it."""
    log.info(
        "sign-in with identity provider failed",
        tenant_id=str(tenant_id),
        provider_id=str(registration.provider_id),
        reason=reason,
    )
