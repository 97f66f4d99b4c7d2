"""Use cases of OAuth clients: register one, store a client's document, find a client."""

from datetime import UTC, datetime

from recollect.accounts.identity.model import generate_secret
from recollect.accounts.oauth.clients import store
from recollect.accounts.oauth.clients.model import (
    CLIENT_KIND,
    OAuthClient,
    client_name,
    client_uri,
    is_client_id,
    redirect_uris,
)
from recollect.postgres.database import Database


async def register(db: Database, *, name: object, uri: object, uris: object, refreshes: bool) -> OAuthClient:
    """Register a new client under a generated id. Raises InvalidInput with the path of the fault in its metadata."""
    client = OAuthClient(
        generate_secret(CLIENT_KIND), client_name(name), client_uri(uri), redirect_uris(uris), refreshes
    )
    async with db.system() as session:
        await store.keep_client(session, client)
    return client


async def keep_document(db: Database, client: OAuthClient) -> OAuthClient:
    """Store a client as its document describes it, until the document is to be read again."""
    async with db.system() as session:
        await store.keep_client(session, client)
    return client


async def find_client(db: Database, client_id: str) -> OAuthClient | None:
    """The client with this id, even if its document is to be read again; None if there is no such client."""
    if not is_client_id(client_id):
        return None
    async with db.system() as session:
        return await store.find_client(session, client_id)


async def note_used(db: Database, client_id: str) -> None:
    """Note that tokens were issued to the client, so that it is not deleted as unused. Consent alone is no use."""
    async with db.system() as session:
        await store.touch_client(session, client_id)


def is_fresh(client: OAuthClient) -> bool:
    """Whether a client's document need not be read again."""
    return client.fresh_until is None or client.fresh_until > datetime.now(UTC)
