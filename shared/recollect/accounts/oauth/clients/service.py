"""Use cases of OAuth clients: register one, keep what one says of itself, find it again."""

from datetime import UTC, datetime

from recollect.accounts.identity.model import generate_secret
from recollect.accounts.oauth.clients import store
from recollect.accounts.oauth.clients.model import (
    CLIENT_KIND,
    Client,
    client_name,
    client_uri,
    is_client_id,
    redirect_uris,
)
from recollect.platform.db import Database


async def register(db: Database, *, name: object, uri: object, uris: object, refreshes: bool) -> Client:
    """A new client with an id of ours. Raises InvalidInput with the path of what is wrong in its metadata."""
    client = Client(generate_secret(CLIENT_KIND), client_name(name), client_uri(uri), redirect_uris(uris), refreshes)
    async with db.system() as session:
        await store.keep_client(session, client)
    return client


async def keep_document(db: Database, client: Client) -> Client:
    """Keep what a client's document says, until it is to be read anew."""
    async with db.system() as session:
        await store.keep_client(session, client)
    return client


async def find_client(db: Database, client_id: str) -> Client | None:
    """The client of this id, however old what is known of it; None where nobody has it."""
    if not is_client_id(client_id):
        return None
    async with db.system() as session:
        return await store.find_client(session, client_id)


async def note_used(db: Database, client_id: str) -> None:
    """Tokens were issued to the client: it is not forgotten. That somebody let it in is no use yet."""
    async with db.system() as session:
        await store.touch_client(session, client_id)


def is_fresh(client: Client) -> bool:
    """Whether what is known of a client need not be asked for again."""
    return client.fresh_until is None or client.fresh_until > datetime.now(UTC)
