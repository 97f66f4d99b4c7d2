"""Who an operator is."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from litestar import Request
from litestar.datastructures import State

NO_TENANT = UUID(int=0)


@dataclass(frozen=True, slots=True)
class OperatorIdentity:
    """An operator: its `actor` in the log, and the client's address. It belongs to no tenant (`NO_TENANT`).

    `name`: of the key by which the operator signed in at the pages; "" elsewhere.
    """

    actor: str
    address: str | None = None
    tenant_id: UUID = NO_TENANT
    name: str = ""


OperatorRequest = Request[OperatorIdentity, Any, State]
"""A request of an operator who has been identified."""
