"""One function per query of `queries.sql`."""

from recollect.distilling.language_models.model import NewModel, StoredModel
from recollect.postgres.sql import Queries
from recollect.postgres.transactions import Transaction

queries = Queries(__package__)


async def find_model(tx: Transaction) -> StoredModel | None:
    """The tenant's language model, or None."""
    return await tx.fetch_object(queries.find_model, StoredModel)


async def upsert_model(tx: Transaction, new: NewModel, *, api_key: bytes | None) -> StoredModel:
    """Store the tenant's language model, with its encrypted key, in place of the one before."""
    row = await tx.fetchrow(
        queries.upsert_model, url=new.url, model=new.model, api_key=api_key, subject=tx.caller.subject
    )
    assert row is not None
    return StoredModel(**row)


async def delete_model(tx: Transaction) -> bool:
    """Delete the tenant's language model; False where there is none."""
    return await tx.fetchval(queries.delete_model) is not None
