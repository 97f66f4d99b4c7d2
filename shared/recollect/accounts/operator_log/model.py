"""Entries of the log of operators, and the closed list of their acts."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class OperatorAction(StrEnum):
    """The acts. Adding one is fine; renaming one breaks whoever searches the log for it."""

    TENANT_CREATED = "tenant.created"
    TENANT_PLAN_CHANGED = "tenant.plan_changed"
    TENANT_SUSPENDED = "tenant.suspended"
    TENANT_RESUMED = "tenant.resumed"
    TENANT_DELETION_REQUESTED = "tenant.deletion_requested"
    TENANT_DELETION_TAKEN_BACK = "tenant.deletion_taken_back"
    TENANT_DELETED = "tenant.deleted"
    TENANT_RESTORED = "tenant.restored"
    TENANT_ERASED = "tenant.erased"
    TENANT_MOVE_BEGUN = "tenant.move_begun"
    TENANT_MOVED = "tenant.moved"
    TENANT_MOVE_UNDONE = "tenant.move_undone"
    CELL_FORGOTTEN = "cell.forgotten"
    PLAN_SET = "plan.set"
    KEY_CREATED = "operator_key.created"
    KEY_REVOKED = "operator_key.revoked"
    SIGNED_IN = "operator_key.signed_in"


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    """One act. `subject`: its object, as `tenant:acme`. `address`: of the client, None if it is not known."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    address: str | None
    trace_id: str | None
    details: dict[str, Any]
