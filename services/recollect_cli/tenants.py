"""`recollect tenants …`: the organisations of a deployment."""

from cyclopts import App

from recollect.tenants import service as tenants
from recollect.tenants.model import Tenant
from recollect_cli.operations import as_operator
from recollect_cli.tables import show

app = App(name="tenants", help="Create, list, suspend and resume tenants.")


@app.command
def create(slug: str, *, name: str | None = None) -> None:
    """Make a tenant with its graph `default`.

    Parameters
    ----------
    slug
        Its place in addresses: a-z 0-9 -
    name
        Its name; default: the slug.
    """
    _show([as_operator(lambda operator: tenants.create_tenant(operator, slug, name or slug))])


@app.command(name="list")
def list_tenants() -> None:
    """Every tenant, by slug."""
    _show(as_operator(tenants.list_tenants))


@app.command
def suspend(slug: str) -> None:
    """Accept none of the tenant's credentials from now on; its data stays."""
    _show([as_operator(lambda operator: tenants.suspend_tenant(operator, slug))])


@app.command
def resume(slug: str) -> None:
    """Accept the tenant's credentials again."""
    _show([as_operator(lambda operator: tenants.resume_tenant(operator, slug))])


def _show(found: list[Tenant]) -> None:
    show(("slug", "name", "status", "created"), [(t.slug, t.name, t.status, f"{t.created_at:%Y-%m-%d}") for t in found])
