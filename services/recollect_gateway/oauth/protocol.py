"""What Authlib judges: requests to the authorization server, and the form of its answers.

Authlib asks for clients, codes and tokens while it judges, and does not await them. So whatever a request may need is
read before, under the locks of its transaction, and handed to a `RequestServer` that answers this one request; what
follows from the judgement is written after. Nothing here waits for anything.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from authlib.common.urls import add_params_to_uri
from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationServer, OAuth2Request
from authlib.oauth2.rfc6749.errors import InvalidRequestError, InvalidScopeError
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, RefreshTokenGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc7662 import IntrospectionEndpoint

from recollect.accounts.oauth.clients.model import Client
from recollect.accounts.oauth.grants.model import (
    DEFAULT_SCOPES,
    SCOPES,
    GrantStanding,
    IssuedTokens,
    PresentedCode,
    PresentedRefresh,
    TokenFacts,
)

T = TypeVar("T")

NOT_STORED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
"""Headers of what no cache may keep."""


@dataclass(frozen=True, slots=True)
class OAuthAnswer:
    """An answer as it leaves: JSON, or a redirect where there is a `location`."""

    status: int
    body: dict[str, Any]
    location: str | None = None


class Refused(Exception):
    """The request is answered by an error: `answer`."""

    def __init__(self, answer: OAuthAnswer) -> None:
        super().__init__(answer.body.get("error", ""))
        self.answer = answer


class InvalidTarget(OAuth2Error):
    """The resource is none of ours, or not the one that the grant is for (RFC 8707)."""

    error = "invalid_target"
    description = "The resource is not one that this server gives tokens for, or not the one that was granted."


class PkceS256(CodeChallenge):
    """PKCE, always and by S256 alone. Authlib by itself takes requests without, and means `plain` by no method."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]
    CODE_CHALLENGE_METHODS = {"S256": CodeChallenge.CODE_CHALLENGE_METHODS["S256"]}

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        """Raise InvalidRequestError unless a challenge is there, with its method."""
        given = grant.request.payload.data
        if not given.get("code_challenge") or given.get("code_challenge_method") != "S256":
            raise InvalidRequestError("PKCE is needed: code_challenge and code_challenge_method=S256")
        super().validate_code_challenge(grant, redirect_uri)


class _Request(OAuth2Request):
    """A request whose parameters are known already, each once."""

    def __init__(self, parameters: Mapping[str, str], *, method: str) -> None:
        # Authlib wants to see that TLS is used. A proxy ends it, and who runs one answers for that.
        super().__init__(method, "https://localhost/")
        self.payload = BasicOAuth2Payload(dict(parameters))

        self._parameters = dict(parameters)

    @property
    def form(self) -> dict[str, str]:
        return self._parameters

    @property
    def args(self) -> dict[str, str]:
        return self._parameters


class _KnownClient:
    """A client as Authlib asks about it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.client_id = client.id

    def get_default_redirect_uri(self) -> str | None:
        return self.client.redirect_uris[0] if len(self.client.redirect_uris) == 1 else None

    def get_allowed_scope(self, scope: str | None) -> str:
        asked = dict.fromkeys((scope or "").split() or DEFAULT_SCOPES)
        return " ".join(known for known in asked if known in SCOPES)

    def check_redirect_uri(self, redirect_uri: str) -> bool:
        return self.client.may_redirect_to(redirect_uri)

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "none"

    def check_response_type(self, response_type: str) -> bool:
        return response_type == "code"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "authorization_code" or (grant_type == "refresh_token" and self.client.refreshes)


class _KnownCode:
    """A code as Authlib asks about it."""

    code_challenge_method = "S256"

    def __init__(self, presented: PresentedCode) -> None:
        self.presented = presented
        self.code_challenge = presented.code_challenge

    def get_redirect_uri(self) -> str:
        return self.presented.redirect_uri

    def get_scope(self) -> str:
        return " ".join(self.presented.standing.allowed)


class _KnownRefresh:
    """A refresh token as Authlib asks about it."""

    def __init__(self, presented: PresentedRefresh) -> None:
        self.presented = presented

    def check_client(self, client: _KnownClient) -> bool:
        return client.client_id == self.presented.standing.client_id

    def get_scope(self) -> str:
        return " ".join(self.presented.standing.scopes)


class _KnownToken:
    """A token that a client asks about or gives back, and that holds."""

    def __init__(self, facts: TokenFacts) -> None:
        self.facts = facts

    def check_client(self, client: _KnownClient) -> bool:
        return client.client_id == self.facts.client_id

    def is_expired(self) -> bool:
        return False

    def is_revoked(self) -> bool:
        return self.facts.used


class _CodeGrant(AuthorizationCodeGrant):
    """The grant of codes. What it would store is stored already, or will be."""

    TOKEN_ENDPOINT_AUTH_METHODS = ["none"]

    @staticmethod
    def validate_authorization_redirect_uri(request: _Request, client: _KnownClient) -> str:
        asked = request.payload.redirect_uri or client.get_default_redirect_uri()
        if not asked or not client.check_redirect_uri(asked):
            raise InvalidRequestError("The redirect_uri is missing, or not one that the client registered.")
        return str(asked)

    def generate_authorization_code(self) -> str:
        return str(self.server.code)

    def save_authorization_code(self, code: str, request: _Request) -> None:
        pass

    def query_authorization_code(self, code: str, client: _KnownClient) -> _KnownCode | None:
        presented = self.server.presented
        return _KnownCode(presented) if isinstance(presented, PresentedCode) else None

    def delete_authorization_code(self, authorization_code: _KnownCode) -> None:
        pass

    def authenticate_user(self, authorization_code: _KnownCode) -> UUID:
        return authorization_code.presented.standing.person_id


class _RefreshGrant(RefreshTokenGrant):
    """The grant of new tokens for a refresh token."""

    TOKEN_ENDPOINT_AUTH_METHODS = ["none"]
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> _KnownRefresh | None:
        presented = self.server.presented
        return _KnownRefresh(presented) if isinstance(presented, PresentedRefresh) else None

    def authenticate_user(self, refresh_token: _KnownRefresh) -> UUID:
        return refresh_token.presented.standing.person_id

    def revoke_old_credential(self, refresh_token: _KnownRefresh) -> None:
        pass


class _Revocation(RevocationEndpoint):
    """Takes a token back; which, the server notes."""

    CLIENT_AUTH_METHODS = ["none"]

    def query_token(self, token_string: str, token_type_hint: str | None) -> Any:
        return self.server.known_token()

    def revoke_token(self, token: _KnownToken, request: _Request) -> None:
        self.server.given_back = token.facts


class _Introspection(IntrospectionEndpoint):
    """Tells a client of its own tokens."""

    CLIENT_AUTH_METHODS = ["none"]

    def query_token(self, token_string: str, token_type_hint: str | None) -> Any:
        return self.server.known_token()

    def check_permission(self, token: _KnownToken, client: _KnownClient, request: _Request) -> bool:
        return token.check_client(client)

    def introspect_token(self, token: _KnownToken) -> dict[str, Any]:
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


class RequestServer(AuthorizationServer):
    """Judges one request, of which all that it needs is known: the client, and what the client presents."""

    def __init__(
        self,
        parameters: Mapping[str, str],
        client: Client | None,
        *,
        presented: PresentedCode | PresentedRefresh | TokenFacts | None = None,
        issuer: str = "",
        method: str = "POST",
    ) -> None:
        super().__init__(scopes_supported=list(SCOPES))
        self.request = _Request(parameters, method=method)
        self.presented, self.issuer = presented, issuer
        self.given_back: TokenFacts | None = None
        self.code = ""
        self._client = client
        self.register_grant(_CodeGrant, [PkceS256(required=True)])
        self.register_grant(_RefreshGrant)
        self.register_endpoint(_Revocation)
        self.register_endpoint(_Introspection)

    def query_client(self, client_id: str) -> _KnownClient | None:
        """The client of the request."""
        known = self._client is not None and self._client.id == client_id
        return _KnownClient(self._client) if known and self._client else None

    def known_token(self) -> _KnownToken | None:
        """What the client presents, where it is a token to be asked about."""
        return _KnownToken(self.presented) if isinstance(self.presented, TokenFacts) else None

    def create_oauth2_request(self, request: Any) -> _Request:
        """The request that is answered."""
        return self.request

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Nobody listens."""

    def handle_response(self, status: int, body: Any, headers: list[tuple[str, str]]) -> OAuthAnswer:
        """What Authlib answers, as a value."""
        return OAuthAnswer(status, dict(body or {}), dict(headers).get("Location"))

    def require_valid_token_request(self, of_resource: Callable[[str], str | None]) -> Any:
        """What goes on with this request, by Authlib; raises Refused. `of_resource`: the resource that is so named."""
        return self._judged(lambda: self._valid_token_request(of_resource))

    def _valid_token_request(self, of_resource: Callable[[str], str | None]) -> Any:
        grant = self.get_token_grant(self.request)
        grant.validate_token_request()
        named = self.request.payload.data.get("resource")
        if named is not None and of_resource(named) != self._standing().resource:
            raise InvalidTarget
        return grant

    def token_answer(self, grant: Any, issued: IssuedTokens) -> OAuthAnswer:
        """The answer that hands tokens out."""

        def handed_out(**_: Any) -> dict[str, Any]:
            token = {"token_type": "Bearer", "access_token": issued.access, "expires_in": issued.seconds}
            if issued.refresh is not None:
                token["refresh_token"] = issued.refresh
            return {**token, "scope": " ".join(issued.scopes)}

        self.register_token_generator("default", handed_out)
        return self.handle_response(*grant.create_token_response())

    def save_token(self, token: Any, request: Any) -> None:
        """It is stored already."""

    def endpoint_answer(self, name: str) -> OAuthAnswer:
        """The answer of an endpoint for tokens: `revocation` or `introspection`."""
        answer: OAuthAnswer = self.create_endpoint_response(name, self.request)
        return answer

    def _standing(self) -> GrantStanding:
        assert isinstance(self.presented, PresentedCode | PresentedRefresh)
        return self.presented.standing

    def _judged(self, judge: Callable[[], T]) -> T:
        try:
            return judge()
        except OAuth2Error as error:
            raise Refused(self.handle_error_response(self.request, error)) from None


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """What a client asks a person for, checked."""

    client: Client
    redirect_uri: str
    resource: str
    scopes: tuple[str, ...]
    code_challenge: str
    state: str | None
    nonce: str | None
    prompts: frozenset[str]


class RedirectedError(Exception):
    """The request is refused, and its client may be told: the browser is sent to `location`."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


class Unanswerable(Exception):
    """The request is refused, and there is nowhere that a browser may be sent to: the message is for the person."""


@dataclass(frozen=True, slots=True)
class AuthorizationEndpoint:
    """Judges authorization requests, and says where browsers are sent back to. `issuer` None names none."""

    issuer: str | None

    def check(
        self, parameters: Mapping[str, str], client: Client, of_resource: Callable[[str | None], str | None]
    ) -> AuthorizationRequest:
        """The request. Raises Unanswerable, or RedirectedError once it is known where its client is."""
        server, grant = self._grant(parameters, client)
        given = server.request.payload.data
        redirect_uri = str(grant.redirect_uri)
        resource = of_resource(given.get("resource"))
        if resource is None:
            raise self.redirected(redirect_uri, given.get("state"), InvalidTarget())
        scopes = tuple(server.request.scope.split())
        if not scopes:
            raise self.redirected(redirect_uri, given.get("state"), InvalidScopeError())
        return AuthorizationRequest(
            client,
            redirect_uri,
            resource,
            scopes,
            given["code_challenge"],
            given.get("state"),
            given.get("nonce"),
            frozenset(given.get("prompt", "").split()),
        )

    def approved(self, request: AuthorizationRequest, code: str) -> str:
        """Where the browser takes the code."""
        return self._with(request.redirect_uri, {"code": code, "state": request.state})

    def denied(self, request: AuthorizationRequest, error: str, description: str) -> str:
        """Where the browser takes an error."""
        said = {"error": error, "error_description": description, "state": request.state}
        return self._with(request.redirect_uri, said)

    def redirected(self, redirect_uri: str, state: str | None, error: OAuth2Error) -> RedirectedError:
        """An error of a client whose address is known to be its own."""
        return RedirectedError(self._with(redirect_uri, {**dict(error.get_body()), "state": state}))

    def _grant(self, parameters: Mapping[str, str], client: Client) -> tuple[RequestServer, Any]:
        server = RequestServer(parameters, client, method="GET")
        given = server.request.payload.data
        try:
            redirect_uri = _CodeGrant.validate_authorization_redirect_uri(server.request, _KnownClient(client))
        except OAuth2Error as error:
            raise Unanswerable(error.description) from None
        try:
            if given.get("response_type") != "code":
                raise OAuth2Error(
                    "This server answers with codes: response_type=code", error="unsupported_response_type"
                )
            return server, server.get_consent_grant()
        except OAuth2Error as error:
            raise self.redirected(redirect_uri, given.get("state"), error) from None

    def _with(self, redirect_uri: str, said: Mapping[str, str | None]) -> str:
        parameters = {**said, "iss": self.issuer}
        return str(add_params_to_uri(redirect_uri, [(name, value) for name, value in parameters.items() if value]))
