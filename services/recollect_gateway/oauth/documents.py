"""Client ID Metadata Documents: the id of such a client is the address of a document that describes it.

The client chose the address. It is read by `recollect.outbound`, which reaches no internal address, and only once a
person has signed in: nobody else can make the server request anything.
(https://datatracker.ietf.org/doc/html/draft-ietf-oauth-client-id-metadata-document-00)
"""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from recollect.accounts.oauth.clients import service as clients
from recollect.accounts.oauth.clients.model import OAuthClient, client_name, client_uri, is_document_id, redirect_uris
from recollect.errors import InvalidInput
from recollect.outbound.http_client import Outbound, OutboundFailed, OutboundResponse
from recollect.postgres.database import Database
from recollect_gateway.oauth.registration import require_codes, takes_refresh_tokens

MAX_DOCUMENT_BYTES = 10 * 1024
PEOPLE = "people"
"""The crowd on whose behalf documents are read: a tenant has any number of people, and reads none itself."""

FRESH = timedelta(minutes=5)
"""How long a document counts whose answer has no `max-age`."""

MIN_FRESH, MOST_FRESH = timedelta(minutes=1), timedelta(days=1)


class NoClient(Exception):
    """There is no such client, or its document cannot be used; the message is for the person."""


@dataclass(frozen=True, slots=True)
class KnownClients:
    """Finds clients by their ids, and reads documents."""

    db: Database
    outbound: Outbound

    async def get(self, client_id: str, *, on_behalf_of: Hashable) -> OAuthClient:
        """The client; `on_behalf_of`: the person for whom a document is read. Raises NoClient."""
        client = await clients.find_client(self.db, client_id)
        if client is not None and clients.is_fresh(client):
            return client
        if not is_document_id(client_id):
            raise NoClient("No client has this id. It may have been removed: register the client again.")
        return await clients.keep_document(self.db, await self._read(client_id, on_behalf_of))

    async def _read(self, client_id: str, on_behalf_of: Hashable) -> OAuthClient:
        try:
            answer = await self.outbound.get(
                client_id, on_behalf_of=on_behalf_of, crowd=PEOPLE, max_bytes=MAX_DOCUMENT_BYTES
            )
        except OutboundFailed:
            raise NoClient("The description of the client at the address that is its id could not be read.") from None
        if answer.status != 200 or not _is_json(answer.media_type):
            raise NoClient("There is no description of the client at the address that is its id.")
        try:
            return described(client_id, answer)
        except InvalidInput as error:
            raise NoClient(f"The description of the client is not valid. {error}") from None


def described(client_id: str, answer: OutboundResponse) -> OAuthClient:
    """The client that a document describes. Raises InvalidInput."""
    document = _object(answer.body)
    if document.get("client_id") != client_id:
        raise InvalidInput("It must be the address of the document", path="client_id")
    if not document.get("client_name"):
        raise InvalidInput("It is required", path="client_name")
    if document.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in document:
        raise InvalidInput(
            "It must be none: clients have no secrets and no keys here", path="token_endpoint_auth_method"
        )
    require_codes(document)
    return OAuthClient(
        client_id,
        client_name(document["client_name"]),
        client_uri(document.get("client_uri")),
        redirect_uris(document.get("redirect_uris")),
        takes_refresh_tokens(document),
        datetime.now(UTC) + _fresh_for(answer),
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise InvalidInput("It is not a JSON object") from None


def _is_json(media_type: str) -> bool:
    return media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json"))


def _fresh_for(answer: OutboundResponse) -> timedelta:
    lifetime = FRESH if answer.max_age is None else timedelta(seconds=min(answer.max_age, 10**6))
    return min(max(lifetime, MIN_FRESH), MOST_FRESH)
