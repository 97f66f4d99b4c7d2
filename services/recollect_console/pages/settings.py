"""Settings of the organisation: its name, time zone and retention."""

from typing import Any

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.response import Redirect

from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import MAX_RETENTION_DAYS, Tenant, TenantPatch
from recollect.errors import InvalidInput, RecollectError
from recollect.times import MAX_ZONE
from recollect_console.access import ADMIN
from recollect_console.refusals import unchanged
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_http.web.refusals import FormRefusal, mark_of, refusal_of

FIELDS = ("name", "retention_days", "time_zone")
DONE = {"saved": "The settings are changed."}


class SettingsPages(Controller):
    """The settings: everybody sees them, admins change them."""

    path = "/settings"

    @get("/")
    async def show(self, visit: NamedDependency[Visit]) -> Response[str]:
        """The settings."""
        return await _page(visit)

    @post("/", opt=ADMIN)
    async def save(self, visit: NamedDependency[Visit]) -> Redirect | Response[str]:
        """Change the settings, where they are still as they were shown."""
        try:
            async with visit.changing_tenant() as tx:
                await tenants.change_own_tenant(tx, _patch(visit), check=unchanged(visit))
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        return visit.go("settings", done="saved")


async def _page(visit: Visit, refusal: FormRefusal | None = None) -> Response[str]:
    async with visit.reading_tenant() as tx:
        tenant = await tenants.own_tenant(tx)
    context: dict[str, Any] = {
        "tenant": tenant,
        "default_days": visit.request.app.state.settings.retention_days,
        "max_days": MAX_RETENTION_DAYS,
        "entered": {name: visit.value(name) for name in FIELDS} if refusal else _fields(tenant),
        "seen": mark_of(tenant),
        "refusal": refusal,
    }
    return render(visit, "settings/show.html", status=refusal.status if refusal else 200, done=DONE, **context)


def _fields(tenant: Tenant) -> dict[str, str]:
    days = "" if tenant.retention_days is None else f"{tenant.retention_days:g}"
    return {"name": tenant.name, "retention_days": days, "time_zone": tenant.time_zone or ""}


def _patch(visit: Visit) -> TenantPatch:
    """What the form asks for. Raises InvalidInput."""
    zone = visit.value("time_zone")
    if len(zone) > MAX_ZONE:
        raise InvalidInput("There is no such time zone", path="time_zone")
    return TenantPatch(visit.value("name"), True, _days(visit.value("retention_days")), True, zone or None)


def _days(entered: str) -> float | None:
    try:
        days = float(entered) if entered else None
    except ValueError:
        days = 0
    if days is not None and not 1 <= days <= MAX_RETENTION_DAYS:
        raise InvalidInput(f"The retention is 1 to {MAX_RETENTION_DAYS} days, or empty", path="retention_days")
    return days
