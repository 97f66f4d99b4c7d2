"""Use cases of the log of operators: record an act, in the transaction of the act; read entries."""

from recollect.accounts.operator_log import store
from recollect.accounts.operator_log.model import OperatorAction, OperatorEntry
from recollect.postgres.operator_sessions import Operator


async def record(operator: Operator, action: OperatorAction, subject: str, **details: object) -> None:
    """Record that this operator does this to a subject (`tenant:acme`). Call it inside `operator.transaction()`."""
    await store.insert_entry(operator, action, subject, details)


async def list_entries(
    operator: Operator, *, subject: str | None = None, before: int | None = None, limit: int = 100
) -> list[OperatorEntry]:
    """Entries, newest first; `subject` None: of all."""
    return await store.list_entries(operator, subject=subject, before=before, limit=limit)
