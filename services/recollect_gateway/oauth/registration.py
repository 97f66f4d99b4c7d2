"""/oauth/register: registration of clients that publish no document of their own (RFC 7591)."""

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Controller, Response, post
from litestar.datastructures import State

from recollect.accounts.oauth.clients import service as clients
from recollect.accounts.oauth.clients.model import OAuthClient
from recollect.errors import InvalidInput
from recollect_gateway.callers.rate_limits import by_address
from recollect_gateway.oauth.discovery import REGISTER
from recollect_gateway.oauth.errors import ERROR_HANDLERS
from recollect_gateway.oauth.protocol import NOT_STORED
from recollect_http.requests import AnyRequest

MAX_METADATA_BYTES = 32 * 1024


class RegistrationController(Controller):
    """Registers clients, always as public ones."""

    include_in_schema = False
    exception_handlers = ERROR_HANDLERS
    guards = (by_address("registrations", lambda settings: settings.oauth_registrations_per_minute),)

    @post(REGISTER)
    async def register(self, request: AnyRequest, state: State) -> Response[dict[str, Any]]:
        """Register a new client, with those of its metadata that apply here."""
        try:
            metadata = _metadata(await request.body())
            client = await clients.register(
                state.databases.home,
                name=metadata.get("client_name"),
                uri=metadata.get("client_uri"),
                uris=metadata.get("redirect_uris"),
                refreshes=takes_refresh_tokens(metadata),
            )
        except InvalidInput as error:
            is_redirect = (error.path or "").startswith("redirect_uris")
            return _refused("invalid_redirect_uri" if is_redirect else "invalid_client_metadata", str(error))
        return Response(_registered(client), status_code=201, headers=NOT_STORED)


def takes_refresh_tokens(metadata: Mapping[str, Any]) -> bool:
    """Whether a client asks for refresh tokens."""
    grant_types = metadata.get("grant_types")
    return isinstance(grant_types, list) and "refresh_token" in grant_types


def _metadata(body: bytes) -> dict[str, Any]:
    if len(body) > MAX_METADATA_BYTES:
        raise InvalidInput(f"The metadata may have at most {MAX_METADATA_BYTES} bytes")
    try:
        metadata = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidInput("The body must be a JSON object") from None
    require_codes(metadata)
    return metadata


def require_codes(metadata: Mapping[str, Any]) -> None:
    """Raise InvalidInput for a client that does not use codes; it may name more, such as device codes."""
    for name, needed in (("grant_types", "authorization_code"), ("response_types", "code")):
        values = metadata.get(name, [needed])
        if not isinstance(values, list) or needed not in values:
            raise InvalidInput(f"Must be a list that contains {needed}", path=name)


def _registered(client: OAuthClient) -> dict[str, Any]:
    grant_types = ["authorization_code", *(["refresh_token"] if client.refreshes else [])]
    registered = {
        "client_id": client.id,
        "client_name": client.name,
        "client_uri": client.uri,
        "redirect_uris": list(client.redirect_uris),
        "grant_types": grant_types,
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    return {name: value for name, value in registered.items() if value is not None}


def _refused(error: str, description: str) -> Response[dict[str, Any]]:
    return Response(
        {"error": error, "error_description": description},
        status_code=400,
        headers=NOT_STORED,
    )
