"""Bodies of the requests and answers of the operator API."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from litestar.params import PathParameter
from msgspec import UNSET, Meta, Struct, UnsetType

from recollect.accounts.deletions.model import MAX_GRACE, ErasureReceipt
from recollect.accounts.operator_log.model import OperatorEntry
from recollect.accounts.people.model import MAX_EMAIL
from recollect.accounts.plans.model import LIMITS, UNLIMITED, Plan
from recollect.accounts.tenants.model import MAX_NAME, Tenant
from recollect.settings.cells import HOME
from recollect_http.fields import (
    ActDetails,
    ClientAddress,
    CreatedAt,
    TenantId,
    TenantName,
    TenantPlan,
    TenantSlug,
    TraceId,
)

MAX_GRACE_DAYS = MAX_GRACE.days
TenantInPath = Annotated[str, PathParameter(description="Slug of the tenant")]
RowsByTable = Annotated[dict[str, int], Meta(description="Numbers of the tenant's rows by table")]

Slug = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=63,
        description="Short name of the tenant in addresses, of the characters a-z, 0-9 and -, unique in the deployment",
        examples=["acme"],
    ),
]
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_NAME,
        description="Name of the tenant for people; null: the slug",
        examples=["Acme"],
    ),
]
CellName = Annotated[str, Meta(description="Name of the cell: `home`, or one that the settings name")]
OwnerEmail = Annotated[
    str,
    Meta(
        min_length=3,
        max_length=MAX_EMAIL,
        description="E-mail address of the first owner, who is invited; null: nobody is invited",
        examples=["ada@acme.example"],
    ),
]
AdminKey = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_NAME,
        description="Name of a first API key of kind `admin`; null: no key is created",
        examples=["first"],
    ),
]

Graphs = Annotated[int, Meta(description="Maximum number of graphs; null: no limit")]
NodesPerGraph = Annotated[
    int,
    Meta(description="Maximum number of entities, facts and placeholders in one graph; null: no limit"),
]
Observations = Annotated[int, Meta(description="Maximum number of observations in all graphs; null: no limit")]
StoredBytes = Annotated[
    int,
    Meta(description="Maximum size of what is stored, with indexes, history and log, in bytes; null: no limit"),
]
EmbeddingsPerDay = Annotated[
    int, Meta(description="Maximum number of passages that are embedded in a day (UTC); null: no limit")
]
RequestsPerMinute = Annotated[
    int, Meta(description="Maximum number of requests of the tenant in a minute; null: no limit")
]
KeyRequestsPerMinute = Annotated[
    int, Meta(description="Maximum number of requests of one API key in a minute; null: no limit")
]
ConcurrentCalls = Annotated[
    int, Meta(description="Maximum number of calls of the tenant at the same time; null: no limit")
]


class TenantRecordBody(Struct, frozen=True):
    """A tenant."""

    id: TenantId
    slug: TenantSlug
    name: TenantName
    status: Annotated[
        str, Meta(description="`active`, `read_only`, `suspended`, or `deleted`, which can be undone until `erase_at`")
    ]
    plan: TenantPlan
    created_at: CreatedAt
    erase_at: Annotated[
        datetime | None, Meta(description="Time from which on a worker erases the tenant; null: it is not deleted")
    ]
    cell: CellName
    deletion_due_at: Annotated[
        datetime | None,
        Meta(
            description="Time from which on a worker deletes the tenant, because one of its owners requested that; "
            "null: no owner did"
        ),
    ]


class CreateTenant(Struct, frozen=True, forbid_unknown_fields=True):
    """A tenant to create."""

    slug: Slug
    name: Name | None = None
    plan: Annotated[TenantPlan, Meta(examples=["team"])] = UNLIMITED
    cell: Annotated[CellName, Meta(min_length=1, max_length=32)] = HOME
    owner_email: OwnerEmail | None = None
    admin_key: AdminKey | None = None


class CellBody(Struct, frozen=True):
    """A cell: a PostgreSQL cluster that holds some tenants."""

    name: CellName
    answers: Annotated[bool, Meta(description="Whether the cell can be reached")]
    tenants: Annotated[int | None, Meta(description="Number of tenants that it serves; null: it cannot be reached")]
    bytes: Annotated[int | None, Meta(description="Size of its database, in bytes; null: it cannot be reached")]
    lacks: Annotated[
        list[str], Meta(description="Names of the migrations that it lacks; empty if it cannot be reached")
    ]


class CreatedTenant(TenantRecordBody, frozen=True):
    """A new tenant with its first credentials."""

    invitation_link: Annotated[
        str | None,
        Meta(description="Link that invites the first owner, returned only here; null: not requested"),
    ]
    admin_key: Annotated[
        str | None, Meta(description="Secret of the first API key, which is returned only here; null: not requested")
    ]


class PlanName(Struct, frozen=True, forbid_unknown_fields=True):
    """The new plan of a tenant."""

    plan: Annotated[TenantPlan, Meta(examples=["team"])]


class Suspension(Struct, frozen=True, forbid_unknown_fields=True):
    """How to suspend a tenant."""

    kind: Annotated[
        Literal["whole", "read_only"],
        Meta(description="`whole` (no credential of the tenant is accepted) or `read_only` (they read, but not write)"),
    ]


class RowCounts(Struct, frozen=True):
    """How many rows a tenant has."""

    rows: RowsByTable


class PlanTermsBody(Struct, frozen=True):
    """A plan and its limits."""

    name: Annotated[str, Meta(description="Name of the plan")]
    graphs: Graphs | None
    nodes_per_graph: NodesPerGraph | None
    observations: Observations | None
    stored_bytes: StoredBytes | None
    embeddings_per_day: EmbeddingsPerDay | None
    requests_per_minute: RequestsPerMinute | None
    key_requests_per_minute: KeyRequestsPerMinute | None
    concurrent_calls: ConcurrentCalls | None


class ChangePlan(Struct, frozen=True, forbid_unknown_fields=True):
    """The limits to change, each at least 1. Omitted limits stay; a new plan does not have them."""

    graphs: Graphs | UnsetType | None = UNSET
    nodes_per_graph: NodesPerGraph | UnsetType | None = UNSET
    observations: Observations | UnsetType | None = UNSET
    stored_bytes: StoredBytes | UnsetType | None = UNSET
    embeddings_per_day: EmbeddingsPerDay | UnsetType | None = UNSET
    requests_per_minute: RequestsPerMinute | UnsetType | None = UNSET
    key_requests_per_minute: KeyRequestsPerMinute | UnsetType | None = UNSET
    concurrent_calls: ConcurrentCalls | UnsetType | None = UNSET

    @property
    def named(self) -> dict[str, int | None]:
        """The limits that the request names."""
        return {limit: getattr(self, limit) for limit in LIMITS if getattr(self, limit) is not UNSET}


class ErasureReceiptBody(Struct, frozen=True):
    """The receipt of an erased tenant."""

    id: Annotated[str, Meta(description="Id of the receipt, a UUID")]
    slug: Annotated[str, Meta(description="Slug that the tenant had, which may be used again")]
    erased_at: Annotated[datetime, Meta(description="Time at which the erasure ended")]
    rows: Annotated[dict[str, int], Meta(description="Numbers of erased rows by table")]
    content: Annotated[
        str,
        Meta(description="JSON text: the tenant, when and by whom it was deleted, when it was erased, and `rows`"),
    ]
    sha256: Annotated[str, Meta(description="SHA-256 of the bytes of `content` (UTF-8), in hexadecimal digits")]


class ErasureBody(Struct, frozen=True):
    """The state of an erasure."""

    state: Annotated[
        Literal["more", "busy", "erased"],
        Meta(description="`more` (rows are left), `busy` (another process works on it) or `erased`"),
    ]
    receipt: Annotated[ErasureReceiptBody | None, Meta(description="Receipt; null: the tenant is not erased yet")]


class StatisticsBody(Struct, frozen=True):
    """The result of recomputing the planner's statistics."""

    left_out: Annotated[
        list[str],
        Meta(description="Names of tables that were left out, because others are analysing or vacuuming them"),
    ]


class EntryBody(Struct, frozen=True):
    """One act of an operator."""

    id: Annotated[str, Meta(description="Number of the entry, as a string")]
    at: Annotated[datetime, Meta(description="Time of the act")]
    actor: Annotated[
        str,
        Meta(
            description="`operator_key:…` with the id of an operator's key, `owner` (a command with the login of the "
            "database's owner) or `service` (a worker)"
        ),
    ]
    action: Annotated[str, Meta(description="Kind of act, such as `tenant.suspended`")]
    subject: Annotated[str, Meta(description="What the act was done to, such as `tenant:acme`")]
    address: ClientAddress
    trace_id: TraceId
    details: ActDetails


def tenant_body(tenant: Tenant, cell: str) -> TenantRecordBody:
    """A tenant of a cell, as the API returns it."""
    return TenantRecordBody(
        str(tenant.id),
        tenant.slug,
        tenant.name,
        tenant.status,
        tenant.plan,
        tenant.created_at,
        tenant.erase_at,
        cell,
        tenant.deletion_due_at,
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
