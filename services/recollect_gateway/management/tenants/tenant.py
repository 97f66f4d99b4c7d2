"""/v1/tenant: the organisation itself, and its settings."""

from typing import Annotated

from litestar import Controller, Response
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.params import JSONBody
from msgspec import UNSET, Meta, Struct, UnsetType

from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import MAX_NAME, MAX_RETENTION_DAYS, Tenant, TenantPatch
from recollect.postgres.tenant_database import TenantDatabase
from recollect.times import MAX_ZONE
from recollect_gateway.management.guards import BY_SCOPE, CallerRequest, requires_admin
from recollect_gateway.requests.validation import valid_body
from recollect_http.fields import CreatedAt, TenantId, TenantName, TenantPlan, TenantSlug
from recollect_http.openapi.routes import get, patch
from recollect_http.preconditions import tagged, unchanged
from recollect_http.problems import CHANGE_RESPONSES, TAGGED_RESPONSES

_OF_RETENTION = "Days for which deleted and superseded data can still be read"
RetentionDays = Annotated[
    float,
    Meta(
        ge=1,
        le=MAX_RETENTION_DAYS,
        description=f"{_OF_RETENTION}, 1 to {MAX_RETENTION_DAYS}; null: the deployment's default",
    ),
]


_OF_ZONE = "Time zone (IANA) of days and times without an offset, for graphs that have none of their own"
Zone = Annotated[str, Meta(max_length=MAX_ZONE, description=f"{_OF_ZONE}; null: UTC", examples=["Europe/Berlin"])]


class TenantSettingsBody(Struct, frozen=True):
    """A tenant's settings."""

    retention_days: Annotated[float | None, Meta(description=f"{_OF_RETENTION}; null: `default_retention_days`")]
    default_retention_days: Annotated[
        float, Meta(description="Days that apply while `retention_days` is null, which the operator sets")
    ]
    time_zone: Annotated[str | None, Meta(description=f"{_OF_ZONE}; null: UTC")]


class TenantBody(Struct, frozen=True):
    """The tenant of the credential."""

    id: TenantId
    slug: TenantSlug
    name: TenantName
    status: Annotated[str, Meta(description="`active` or `read_only`")]
    plan: TenantPlan
    created_at: CreatedAt
    settings: Annotated[TenantSettingsBody, Meta(description="Settings that admins of the tenant can change")]


class ChangeTenantSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings to change. Omitted settings stay."""

    retention_days: RetentionDays | UnsetType | None = UNSET
    time_zone: Zone | UnsetType | None = UNSET


class ChangeTenant(Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of the tenant to change. Omitted fields stay."""

    name: Annotated[TenantName, Meta(min_length=1, max_length=MAX_NAME, examples=["Acme"])] | UnsetType = UNSET
    settings: Annotated[ChangeTenantSettings, Meta(description="Settings to change")] = ChangeTenantSettings()


class TenantController(Controller):
    """Read and change the tenant."""

    path = "/tenant"
    tags = ("tenant",)
    opt = BY_SCOPE

    @get("/", responses=TAGGED_RESPONSES, response_description="The tenant.", summary="Get the tenant")
    async def get_tenant(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State
    ) -> Response[TenantBody]:
        """Return the tenant of the credential with its settings, and its ETag."""
        async with db.transaction(request.user, read_only=True) as tx:
            return tagged(request, _body(await tenants.own_tenant(tx), state))

    @patch(
        "/",
        responses=CHANGE_RESPONSES,
        response_description="The tenant after the change.",
        summary="Update the tenant",
        guards=[requires_admin],
        before_request=valid_body(ChangeTenant),
    )
    async def update_tenant(
        self, request: CallerRequest, db: NamedDependency[TenantDatabase], state: State, data: JSONBody[ChangeTenant]
    ) -> TenantBody:
        """Change the tenant's name or settings. Omitted fields stay.

        A shorter retention permanently removes what is older. With `If-Match`, the tenant is changed only if it is
        still as it was read.
        """

        def lasting(tenant: Tenant) -> TenantBody:
            return _body(tenant, state)

        changes = TenantPatch(
            None if data.name is UNSET else data.name,
            data.settings.retention_days is not UNSET,
            None if data.settings.retention_days is UNSET else data.settings.retention_days,
            data.settings.time_zone is not UNSET,
            None if data.settings.time_zone is UNSET else data.settings.time_zone,
        )
        async with db.transaction(request.user) as tx:
            return _body(await tenants.change_own_tenant(tx, changes, check=unchanged(request, lasting)), state)


def _body(tenant: Tenant, state: State) -> TenantBody:
    settings = TenantSettingsBody(tenant.retention_days, state.settings.retention_days, tenant.time_zone)
    return TenantBody(str(tenant.id), tenant.slug, tenant.name, tenant.status, tenant.plan, tenant.created_at, settings)
