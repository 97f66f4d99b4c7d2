"""Bodies of the requests and answers of the operator API."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from recollect.accounts.deletions.model import MAX_GRACE, ErasureReceipt
from recollect.accounts.operator_log.model import OperatorEntry
from recollect.accounts.people.model import MAX_EMAIL
from recollect.accounts.plans.model import LIMITS, UNLIMITED, Plan
from recollect.accounts.tenants.model import MAX_NAME, Tenant
from recollect.settings.cells import HOME

MAX_GRACE_DAYS = MAX_GRACE.days
Limit = int | None | UnsetType


class TenantRecordBody(Struct, frozen=True):
    """A tenant. `status`: `active`, `read_only`, `suspended`, or `deleted`, which can be undone until `erase_at`."""

    id: str
    slug: str
    name: str
    status: str
    plan: str
    created_at: datetime
    erase_at: datetime | None
    cell: str


class CreateTenant(Struct, frozen=True, forbid_unknown_fields=True):
    """A tenant to create. `owner_email`: the first owner to invite. `admin_key`: the name of a first key to create."""

    slug: Annotated[str, Meta(min_length=1, max_length=63)]
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)] | None = None
    plan: str = UNLIMITED
    cell: Annotated[str, Meta(min_length=1, max_length=32)] = HOME
    owner_email: Annotated[str, Meta(min_length=3, max_length=MAX_EMAIL)] | None = None
    admin_key: Annotated[str, Meta(min_length=1, max_length=MAX_NAME)] | None = None


class CellBody(Struct, frozen=True):
    """A cell. `lacks`: missing migrations. If it does not answer, `tenants` and `bytes` are null, `lacks` is empty."""

    name: str
    answers: bool
    tenants: int | None
    bytes: int | None
    lacks: list[str]


class CreatedTenant(TenantRecordBody, frozen=True):
    """A new tenant with its first credentials, which are returned only once; null if they were not requested."""

    invitation_link: str | None
    admin_key: str | None


class PlanName(Struct, frozen=True, forbid_unknown_fields=True):
    """The new plan of a tenant."""

    plan: str


class Suspension(Struct, frozen=True, forbid_unknown_fields=True):
    """`whole`: none of the tenant's credentials is accepted. `read_only`: they can read but not write."""

    kind: Literal["whole", "read_only"]


class RowCounts(Struct, frozen=True):
    """The number of a tenant's rows in each table."""

    rows: dict[str, int]


class PlanTermsBody(Struct, frozen=True):
    """A plan and its limits; null: no limit."""

    name: str
    graphs: int | None
    nodes_per_graph: int | None
    observations: int | None
    stored_bytes: int | None
    embeddings_per_day: int | None
    requests_per_minute: int | None
    key_requests_per_minute: int | None
    concurrent_calls: int | None


class ChangePlan(Struct, frozen=True, forbid_unknown_fields=True):
    """The limits to change: a number of at least 1, or null to remove the limit. A new plan has no other limits."""

    graphs: Limit = UNSET
    nodes_per_graph: Limit = UNSET
    observations: Limit = UNSET
    stored_bytes: Limit = UNSET
    embeddings_per_day: Limit = UNSET
    requests_per_minute: Limit = UNSET
    key_requests_per_minute: Limit = UNSET
    concurrent_calls: Limit = UNSET

    @property
    def named(self) -> dict[str, int | None]:
        """The limits that the request names."""
        return {limit: getattr(self, limit) for limit in LIMITS if getattr(self, limit) is not UNSET}


class ErasureReceiptBody(Struct, frozen=True):
    """The receipt of an erased tenant. `content`: JSON that includes `rows`; `sha256` is the hash of its bytes."""

    id: str
    slug: str
    erased_at: datetime
    rows: dict[str, int]
    content: str
    sha256: str


class ErasureBody(Struct, frozen=True):
    """The state of an erasure: `more` is left to do, another process works on it (`busy`), or it is `erased`, with a
    receipt.
    """

    state: Literal["more", "busy", "erased"]
    receipt: ErasureReceiptBody | None


class StatisticsBody(Struct, frozen=True):
    """Tables whose statistics could not be recomputed, since others are analysing or vacuuming them."""

    left_out: list[str]


class EntryBody(Struct, frozen=True):
    """An act of an operator. `subject`: what it was done to, such as `tenant:acme`."""

    id: str
    at: datetime
    actor: str
    action: str
    subject: str
    address: str | None
    trace_id: str | None
    details: dict[str, Any]


def tenant_body(tenant: Tenant, cell: str) -> TenantRecordBody:
    """A tenant of a cell, as the API returns it."""
    return TenantRecordBody(
        str(tenant.id), tenant.slug, tenant.name, tenant.status, tenant.plan, tenant.created_at, tenant.erase_at, cell
    )


def plan_body(plan: Plan) -> PlanTermsBody:
    """A plan, as the API returns it."""
    return PlanTermsBody(**asdict(plan))


def receipt_body(receipt: ErasureReceipt) -> ErasureReceiptBody:
    """A receipt, as the API returns it."""
    rows = msgspec.json.decode(receipt.content)["rows"]
    return ErasureReceiptBody(str(receipt.id), receipt.slug, receipt.erased_at, rows, receipt.content, receipt.sha256)


def entry_body(entry: OperatorEntry) -> EntryBody:
    """An entry of the log, as the API returns it."""
    return EntryBody(**{**asdict(entry), "id": str(entry.id)})
