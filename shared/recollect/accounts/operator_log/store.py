"""One function per query of `queries.sql`. They run as the owner or as the operator API."""

from collections.abc import Mapping

import msgspec

from recollect.accounts.operator_log.model import OperatorAction, OperatorEntry
from recollect.postgres.operator_sessions import Operator
from recollect.postgres.sql import Queries
from recollect.telemetry.tracing import current_trace_id

queries = Queries(__package__)


async def insert_entry(operator: Operator, action: OperatorAction, subject: str, details: Mapping[str, object]) -> None:
    """Store an act of this operator."""
    await operator.execute(
        queries.insert_entry,
        actor=operator.actor,
        action=action,
        subject=subject,
        address=operator.address,
        trace_id=current_trace_id(),
        details=msgspec.json.encode(details).decode(),
    )


async def list_entries(
    operator: Operator, *, subject: str | None, before: int | None, limit: int
) -> list[OperatorEntry]:
    """Entries before the id `before`, newest first."""
    rows = await operator.fetch(queries.list_entries, subject=subject, before=before, limit=limit)
    return [OperatorEntry(**{**row, "details": msgspec.json.decode(row["details"])}) for row in rows]
