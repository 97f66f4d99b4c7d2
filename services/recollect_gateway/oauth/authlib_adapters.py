"""The request, client, code and tokens of one request to the authorization server, in the form that Authlib takes.

Authlib asks for them while it validates, and does not await them: so all are read before.
"""

from collections.abc import Mapping

from authlib.oauth2.rfc6749 import OAuth2Request
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload

from recollect.accounts.oauth.clients.model import OAuthClient
from recollect.accounts.oauth.grants.model import DEFAULT_SCOPES, SCOPES, PresentedCode, PresentedRefresh, TokenFacts


class AuthlibRequest(OAuth2Request):
    """A request whose parameters are known already, each once."""

    def __init__(self, parameters: Mapping[str, str], *, method: str) -> None:
        # Authlib requires an https address. A proxy terminates TLS, and its operator is responsible for that.
        super().__init__(method, "https://localhost/")
        self.payload = BasicOAuth2Payload(dict(parameters))

        self._parameters = dict(parameters)

    @property
    def form(self) -> dict[str, str]:
        return self._parameters

    @property
    def args(self) -> dict[str, str]:
        return self._parameters


class AuthlibClient:
    """A client in the form that Authlib takes."""

    def __init__(self, client: OAuthClient) -> None:
        self.client = client
        self.client_id = client.id

    def get_default_redirect_uri(self) -> str | None:
        return self.client.redirect_uris[0] if len(self.client.redirect_uris) == 1 else None

    def get_allowed_scope(self, scope: str | None) -> str:
        scopes = dict.fromkeys((scope or "").split() or DEFAULT_SCOPES)
        return " ".join(known for known in scopes if known in SCOPES)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return self.client.may_redirect_to(redirect_uri)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "none"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code" or (grant_type == "refresh_token" and self.client.refreshes)


class AuthlibCode:
    """A code in the form that Authlib takes. `redirect_uri`: that of the token request, if it has one."""

    code_challenge_method = "S256"

    def __init__(self, presented: PresentedCode, redirect_uri: str | None) -> None:
        self.presented = presented
        self.code_challenge = presented.code_challenge
        self._requested_uri = redirect_uri

    def get_redirect_uri(self) -> str | None:
        # A token request may leave it out (as in OAuth 2.1, or where the code was requested without it). Then PKCE
        # alone proves whose the code is: Authlib compares nothing with None.
        return self.presented.redirect_uri if self._requested_uri else None

    def get_scope(self) -> str:
        return " ".join(self.presented.grant.allowed)


class AuthlibRefreshToken:
    """A refresh token in the form that Authlib takes."""

    def __init__(self, presented: PresentedRefresh) -> None:
        self.presented = presented

    def check_client(self, client: AuthlibClient) -> bool:
        return client.client_id == self.presented.grant.client_id

    def get_scope(self) -> str:
        return " ".join(self.presented.grant.scopes)


class AuthlibToken:
    """A valid token that a client introspects or revokes, in the form that Authlib takes."""

    def __init__(self, facts: TokenFacts) -> None:
        self.facts = facts

    def check_client(self, client: AuthlibClient) -> bool:
        return client.client_id == self.facts.client_id

    def is_expired(self) -> bool:
        return False

    def is_revoked(self) -> bool:
        return self.facts.used
