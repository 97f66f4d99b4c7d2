"""One function per query of `queries.sql`. Clients have no tenant: each query calls a SECURITY DEFINER function."""

from recollect.accounts.oauth.clients.model import OAuthClient
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Session

queries = Queries(__package__)


async def find_client(session: Session, client_id: str) -> OAuthClient | None:
    """The client with this id, or None."""
    row = await session.fetchrow(queries.find_client, client_id=client_id)
    return OAuthClient(**{**row, "redirect_uris": tuple(row["redirect_uris"])}) if row else None


async def keep_client(session: Session, client: OAuthClient) -> bool:
    """Store a client, or its present document; False if the id is that of a registered client."""
    created_at = await session.fetchval(
        queries.keep_client,
        client_id=client.id,
        name=client.name,
        uri=client.uri,
        redirect_uris=list(client.redirect_uris),
        refreshes=client.refreshes,
        fresh_until=client.fresh_until,
    )
    return created_at is not None


async def touch_client(session: Session, client_id: str) -> None:
    """Note that a client was used."""
    await session.execute(queries.touch_client, client_id=client_id)
