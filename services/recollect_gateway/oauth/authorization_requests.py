"""Authorization requests: which of them are refused, how, and where the browser is sent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.rfc6749.errors import InvalidScopeError

from recollect.accounts.oauth.clients.model import OAuthClient
from recollect_gateway.oauth.authlib_adapters import AuthlibClient
from recollect_gateway.oauth.grants import CodeGrant
from recollect_gateway.oauth.protocol import InvalidTarget, RequestServer


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A client's request for a person's approval, checked."""

    client: OAuthClient
    redirect_uri: str
    resource: str
    scopes: tuple[str, ...]
    code_challenge: str
    state: str | None
    nonce: str | None
    prompts: frozenset[str]


class RedirectedError(Exception):
    """The request is refused before a person is asked. The client learns it from a browser sent to `location`."""

    def __init__(self, client: OAuthClient, location: str, description: str) -> None:
        super().__init__(description)
        self.client, self.location = client, location


class Unanswerable(Exception):
    """The request is refused, and there is no address to which a browser may be sent: the message is for the person."""


@dataclass(frozen=True, slots=True)
class AuthorizationEndpoint:
    """Checks authorization requests, and makes the addresses to which browsers go back. `issuer` None adds no `iss`."""

    issuer: str | None

    def check(
        self, parameters: Mapping[str, str], client: OAuthClient, find_resource: Callable[[str | None], str | None]
    ) -> AuthorizationRequest:
        """The request. Raises Unanswerable, or RedirectedError once the address of its client is known."""
        server, grant = self._grant(parameters, client)
        payload = server.request.payload.data
        redirect_uri = str(grant.redirect_uri)
        resource = find_resource(payload.get("resource"))
        if resource is None:
            raise self._refusal(client, redirect_uri, payload.get("state"), InvalidTarget())
        scopes = tuple(server.request.scope.split())
        if not scopes:
            raise self._refusal(client, redirect_uri, payload.get("state"), InvalidScopeError())
        return AuthorizationRequest(
            client,
            redirect_uri,
            resource,
            scopes,
            payload["code_challenge"],
            payload.get("state"),
            payload.get("nonce"),
            frozenset(payload.get("prompt", "").split()),
        )

    def approval_location(self, request: AuthorizationRequest, code: str) -> str:
        """The address to which the browser takes the code."""
        return self._location(request.redirect_uri, {"code": code, "state": request.state})

    def denial_location(self, request: AuthorizationRequest) -> str:
        """The address to which the browser takes a person's no."""
        parameters = {
            "error": "access_denied",
            "error_description": "The person denied the request.",
            "state": request.state,
        }
        return self._location(request.redirect_uri, parameters)

    def prompt_needed(self, request: AuthorizationRequest, code: str, description: str) -> RedirectedError:
        """The error of a request with `prompt=none`, for which a person would have to be asked."""
        error = OAuth2Error(description, error=code)
        return self._refusal(request.client, request.redirect_uri, request.state, error)

    def _refusal(
        self, client: OAuthClient, redirect_uri: str, state: str | None, error: OAuth2Error
    ) -> RedirectedError:
        body = dict(error.get_body())
        location = self._location(redirect_uri, {**body, "state": state})
        return RedirectedError(client, location, body.get("error_description") or body["error"])

    def _grant(self, parameters: Mapping[str, str], client: OAuthClient) -> tuple[RequestServer, Any]:
        server = RequestServer(parameters, client, method="GET")
        payload = server.request.payload.data
        try:
            redirect_uri = CodeGrant.validate_authorization_redirect_uri(server.request, AuthlibClient(client))
        except OAuth2Error as error:
            raise Unanswerable(error.description) from None
        try:
            if payload.get("response_type") != "code":
                raise OAuth2Error(
                    "This server supports the authorization code flow only: response_type=code",
                    error="unsupported_response_type",
                )
            return server, server.get_consent_grant()
        except OAuth2Error as error:
            raise self._refusal(client, redirect_uri, payload.get("state"), error) from None

    def _location(self, redirect_uri: str, parameters: Mapping[str, str | None]) -> str:
        """The client's address with these parameters, and else letter by letter: it has no fragment.

        To parse and to join again would change it: `app:///callback` has an empty host.
        """
        query = urlencode({name: value for name, value in {**parameters, "iss": self.issuer}.items() if value})
        return f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{query}"
