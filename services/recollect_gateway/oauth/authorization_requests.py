"""Authorization requests: which are refused, and how, and where the browser is sent back to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from authlib.common.urls import add_params_to_uri
from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.rfc6749.errors import InvalidScopeError

from recollect.accounts.oauth.clients.model import Client
from recollect_gateway.oauth.grants import CodeGrant
from recollect_gateway.oauth.known import KnownClient
from recollect_gateway.oauth.protocol import InvalidTarget, RequestServer


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
    """The request is refused, and no person was asked. Its client is told by the browser that goes to `location`."""

    def __init__(self, client: Client, location: str, description: str) -> None:
        super().__init__(description)
        self.client, self.location = client, location


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
            raise self._refused(client, redirect_uri, given.get("state"), InvalidTarget())
        scopes = tuple(server.request.scope.split())
        if not scopes:
            raise self._refused(client, redirect_uri, given.get("state"), InvalidScopeError())
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

    def denied(self, request: AuthorizationRequest) -> str:
        """Where the browser takes a person's no."""
        said = {"error": "access_denied", "error_description": "The person said no.", "state": request.state}
        return self._with(request.redirect_uri, said)

    def unasked(self, request: AuthorizationRequest, code: str, description: str) -> RedirectedError:
        """The error of a request that no person may be asked about, as its client wants it."""
        error = OAuth2Error(description, error=code)
        return self._refused(request.client, request.redirect_uri, request.state, error)

    def _refused(self, client: Client, redirect_uri: str, state: str | None, error: OAuth2Error) -> RedirectedError:
        said = dict(error.get_body())
        location = self._with(redirect_uri, {**said, "state": state})
        return RedirectedError(client, location, said.get("error_description") or said["error"])

    def _grant(self, parameters: Mapping[str, str], client: Client) -> tuple[RequestServer, Any]:
        server = RequestServer(parameters, client, method="GET")
        given = server.request.payload.data
        try:
            redirect_uri = CodeGrant.validate_authorization_redirect_uri(server.request, KnownClient(client))
        except OAuth2Error as error:
            raise Unanswerable(error.description) from None
        try:
            if given.get("response_type") != "code":
                raise OAuth2Error(
                    "This server answers with codes: response_type=code", error="unsupported_response_type"
                )
            return server, server.get_consent_grant()
        except OAuth2Error as error:
            raise self._refused(client, redirect_uri, given.get("state"), error) from None

    def _with(self, redirect_uri: str, said: Mapping[str, str | None]) -> str:
        parameters = {**said, "iss": self.issuer}
        return str(add_params_to_uri(redirect_uri, [(name, value) for name, value in parameters.items() if value]))
