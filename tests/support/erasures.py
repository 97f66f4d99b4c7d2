"""Tenants that are erased at once, and what their receipts say."""

import json
from datetime import timedelta

from recollect.accounts.deletions import service as deletions
from recollect.accounts.deletions.model import ErasureReceipt
from recollect.accounts.tenants import service as tenants
from recollect.postgres.operator_sessions import Operator


async def erase_now(operator: Operator, slug: str) -> dict[str, int]:
    """Delete and erase a tenant without grace; return the number of erased rows of each table. It may be repeated."""
    tenant = await tenants.find_tenant(operator, slug)
    await deletions.delete_tenant(operator, slug, grace=timedelta(0))
    return rows_of(await deletions.finish_erasure(operator, tenant.id))


def rows_of(receipt: ErasureReceipt) -> dict[str, int]:
    """The number of erased rows of each table."""
    rows: dict[str, int] = json.loads(receipt.content)["rows"]
    return rows
