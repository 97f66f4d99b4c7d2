"""Authlib's grants for codes and refresh tokens, and its endpoints for tokens. They store nothing: `token.py` does."""

from typing import Any
from uuid import UUID

from authlib.oauth2.rfc6749.errors import InvalidRequestError
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7662 import IntrospectionEndpoint

from recollect.accounts.oauth.grants.model import PresentedCode, PresentedRefresh
from recollect_gateway.oauth.authlib_adapters import (
    AuthlibClient,
    AuthlibCode,
    AuthlibRefreshToken,
    AuthlibRequest,
    AuthlibToken,
)


class PkceS256(CodeChallenge):
    """PKCE, always and by S256 alone. Authlib's own takes requests without it, and defaults to the method `plain`."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]
    CODE_CHALLENGE_METHODS = {"S256": CodeChallenge.CODE_CHALLENGE_METHODS["S256"]}

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        """Raise InvalidRequestError unless a challenge is there, with its method."""
        payload = grant.request.payload.data
        if not payload.get("code_challenge") or payload.get("code_challenge_method") != "S256":
            raise InvalidRequestError("PKCE is needed: code_challenge and code_challenge_method=S256")
        super().validate_code_challenge(grant, redirect_uri)


class CodeGrant(AuthorizationCodeGrant):
    """The grant of codes. The code that it would store is stored before or after it."""

    TOKEN_ENDPOINT_AUTH_METHODS = ["none"]

    @staticmethod
    def validate_authorization_redirect_uri(request: AuthlibRequest, client: AuthlibClient) -> str:
        redirect_uri = request.payload.redirect_uri or client.get_default_redirect_uri()
        if not redirect_uri or not client.check_redirect_uri(redirect_uri):
            raise InvalidRequestError("The redirect_uri is missing, or not one that the client registered.")
        return str(redirect_uri)

    def generate_authorization_code(self) -> str:
        return str(self.server.code)

    def save_authorization_code(self, code: str, request: AuthlibRequest) -> None:
        pass

    def query_authorization_code(self, code: str, client: AuthlibClient) -> AuthlibCode | None:
        presented = self.server.presented
        redirect_uri = self.request.payload.redirect_uri
        return AuthlibCode(presented, redirect_uri) if isinstance(presented, PresentedCode) else None

    def delete_authorization_code(self, authorization_code: AuthlibCode) -> None:
        pass

    def authenticate_user(self, authorization_code: AuthlibCode) -> UUID:
        return authorization_code.presented.grant.person_id


class RefreshGrant(RefreshTokenGrant):
    """The grant of new tokens for a refresh token."""

    TOKEN_ENDPOINT_AUTH_METHODS = ["none"]
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> AuthlibRefreshToken | None:
        presented = self.server.presented
        return AuthlibRefreshToken(presented) if isinstance(presented, PresentedRefresh) else None

    def authenticate_user(self, refresh_token: AuthlibRefreshToken) -> UUID:
        return refresh_token.presented.grant.person_id

    def revoke_old_credential(self, refresh_token: AuthlibRefreshToken) -> None:
        pass


class Revocation(RevocationEndpoint):
    """Revokes a token: notes on the server which one."""

    CLIENT_AUTH_METHODS = ["none"]

    def query_token(self, token_string: str, token_type_hint: str | None) -> Any:
        return self.server.known_token()

    def revoke_token(self, token: AuthlibToken, request: AuthlibRequest) -> None:
        self.server.revoked_token = token.facts


class Introspection(IntrospectionEndpoint):
    """Answers a client about its own tokens."""

    CLIENT_AUTH_METHODS = ["none"]

    def query_token(self, token_string: str, token_type_hint: str | None) -> Any:
        return self.server.known_token()

    def check_permission(self, token: AuthlibToken, client: AuthlibClient, request: AuthlibRequest) -> bool:
        return token.check_client(client)

    def introspect_token(self, token: AuthlibToken) -> dict[str, Any]:
        facts = token.facts
        return {
            "active": True,
            "client_id": facts.client_id,
            "token_type": "Bearer" if facts.kind == "access" else facts.kind,
            "scope": " ".join(facts.scopes),
            "sub": str(facts.person_id),
            "aud": facts.resource,
            "iss": self.server.issuer,
            "iat": int(facts.created_at.timestamp()),
            "exp": int(facts.expires_at.timestamp()),
        }
