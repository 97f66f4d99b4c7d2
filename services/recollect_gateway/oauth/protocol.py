"""The part that Authlib does: it validates requests to the authorization server, and forms the answers.

Authlib asks for clients, codes and tokens while it validates, and does not await them. So whatever a request may need
is read before, under the locks of its transaction, and handed to a `RequestServer` that answers this one request; what
follows from the answer is written after. Nothing here does I/O.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationServer

from recollect.accounts.oauth.clients.model import OAuthClient
from recollect.accounts.oauth.grants.model import (
    SCOPES,
    GrantStatus,
    IssuedTokens,
    PresentedCode,
    PresentedRefresh,
    TokenFacts,
)
from recollect_gateway.oauth.authlib_adapters import AuthlibClient, AuthlibRequest, AuthlibToken
from recollect_gateway.oauth.grants import CodeGrant, Introspection, PkceS256, RefreshGrant, Revocation

NOT_STORED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
"""Headers of answers that no cache may store."""


@dataclass(frozen=True, slots=True)
class OAuthAnswer:
    """An answer to be sent: JSON, or a redirect where there is a `location`."""

    status: int
    body: dict[str, Any]
    location: str | None = None


class Refused(Exception):
    """The request is refused; `answer` is the error to send."""

    def __init__(self, answer: OAuthAnswer) -> None:
        super().__init__(answer.body.get("error", ""))
        self.answer = answer


class InvalidTarget(OAuth2Error):
    """The resource is not one of this server's, or not the one that the grant is for (RFC 8707)."""

    error = "invalid_target"
    description = "This server issues no tokens for the resource, or the resource is not the one that was granted."


def without_unknown_scopes(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters without scopes that this server does not have, which it may ignore (RFC 6749, 3.3).

    If none remains, the client gets nothing that it asked for: then all stay, and are refused.
    """
    known = [scope for scope in parameters.get("scope", "").split() if scope in SCOPES]
    return {**parameters, "scope": " ".join(known)} if known else dict(parameters)


class RequestServer(AuthorizationServer):
    """Validates and answers one request. The client and what it presents (`presented`) are read before."""

    def __init__(
        self,
        parameters: Mapping[str, str],
        client: OAuthClient | None,
        *,
        presented: PresentedCode | PresentedRefresh | TokenFacts | None = None,
        issuer: str = "",
        method: str = "POST",
    ) -> None:
        super().__init__(scopes_supported=list(SCOPES))
        self.request = AuthlibRequest(without_unknown_scopes(parameters), method=method)
        self.presented, self.issuer = presented, issuer
        self.revoked_token: TokenFacts | None = None
        self.code = ""
        self._client = client
        self.register_grant(CodeGrant, [PkceS256(required=True)])
        self.register_grant(RefreshGrant)
        self.register_endpoint(Revocation)
        self.register_endpoint(Introspection)

    def query_client(self, client_id: str) -> AuthlibClient | None:
        """The client of the request."""
        return AuthlibClient(self._client) if self._client is not None and self._client.id == client_id else None

    def known_token(self) -> AuthlibToken | None:
        """The token that the client introspects or revokes, if it holds."""
        return AuthlibToken(self.presented) if isinstance(self.presented, TokenFacts) else None

    def create_oauth2_request(self, request: Any) -> AuthlibRequest:
        """The request that is answered."""
        return self.request

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Do nothing: nobody listens."""

    def handle_response(self, status: int, body: Any, headers: list[tuple[str, str]]) -> OAuthAnswer:
        """Authlib's answer as a value."""
        return OAuthAnswer(status, dict(body or {}), dict(headers).get("Location"))

    def require_valid_token_request(self, find_resource: Callable[[str], str | None]) -> Any:
        """Authlib's grant for this request; raises Refused. `find_resource` gives the resource that a client names."""
        try:
            return self._valid_grant(find_resource)
        except OAuth2Error as error:
            raise Refused(self.handle_error_response(self.request, error)) from None

    def _valid_grant(self, find_resource: Callable[[str], str | None]) -> Any:
        grant = self.get_token_grant(self.request)
        grant.validate_token_request()
        uri = self.request.payload.data.get("resource")
        if uri is not None and find_resource(uri) != self._grant_status().resource:
            raise InvalidTarget
        return grant

    def token_answer(self, grant: Any, issued: IssuedTokens) -> OAuthAnswer:
        """The answer that holds the issued tokens."""

        def issued_token(**_: Any) -> dict[str, Any]:
            token = {"token_type": "Bearer", "access_token": issued.access, "expires_in": issued.seconds}
            if issued.refresh is not None:
                token["refresh_token"] = issued.refresh
            return {**token, "scope": " ".join(issued.scopes)}

        self.register_token_generator("default", issued_token)
        return self.handle_response(*grant.create_token_response())

    def save_token(self, token: Any, request: Any) -> None:
        """Do nothing: the token is stored already."""

    def endpoint_answer(self, name: str) -> OAuthAnswer:
        """The answer of an endpoint for tokens: `revocation` or `introspection`."""
        answer: OAuthAnswer = self.create_endpoint_response(name, self.request)
        return answer

    def _grant_status(self) -> GrantStatus:
        assert isinstance(self.presented, PresentedCode | PresentedRefresh)
        return self.presented.grant
