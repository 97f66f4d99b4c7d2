"""`recollect tenants …`: the organisations of a deployment."""

import sys
import time
from collections.abc import Callable

from cyclopts import App

from recollect.accounts.deletions import service as deletions
from recollect.accounts.plans.model import UNLIMITED
from recollect.accounts.tenants import service as tenants
from recollect.accounts.tenants.model import Tenant
from recollect.errors import ErrorCode, Unavailable
from recollect.retention.erasure.model import REMAINS
from recollect_cli.operations import as_operator
from recollect_cli.tables import show

ATTEMPTS = 5
"""How often a step of an erasure is tried: a call that was under way at the suspension may hold the tenant's rows."""

app = App(name="tenants", help="Create, list, suspend, resume and erase tenants, and give them plans.")


@app.command
def create(slug: str, *, name: str | None = None, plan: str = UNLIMITED) -> None:
    """Make a tenant with its graph `default`.

    Parameters
    ----------
    slug
        Its place in addresses: a-z 0-9 -
    name
        Its name; default: the slug.
    plan
        What it may have and ask for, as `recollect plans list` tells.
    """
    _show([as_operator(lambda operator: tenants.create_tenant(operator, slug, name or slug, plan=plan))])


@app.command(name="list")
def list_tenants() -> None:
    """Every tenant, by slug."""
    _show(as_operator(tenants.list_tenants))


@app.command
def set_plan(slug: str, plan: str) -> None:
    """Give a tenant another plan, in force with its next call.

    What it has stays, also where that is more than the plan allows: it then can only delete.

    Parameters
    ----------
    slug
        Its place in addresses.
    plan
        The plan's name.
    """
    _show([as_operator(lambda operator: tenants.set_plan(operator, slug, plan))])


@app.command
def suspend(slug: str) -> None:
    """Accept none of the tenant's credentials from now on; its data stays."""
    _show([as_operator(lambda operator: tenants.suspend_tenant(operator, slug))])


@app.command
def resume(slug: str) -> None:
    """Accept the tenant's credentials again."""
    _show([as_operator(lambda operator: tenants.resume_tenant(operator, slug))])


@app.command
def erase(slug: str, *, dry_run: bool = False, yes: bool = False) -> None:
    """Delete a tenant with all that it stored, its keys and its log, and print how many rows of each table.

    Parameters
    ----------
    slug
        Its place in addresses.
    dry_run
        Only count.
    yes
        Do it: nothing brings it back.
    """
    if not (dry_run or yes):
        raise SystemExit(f"This deletes {slug!r} for good. Say --yes, or --dry-run to see what there is.")
    erasing = deletions.count_rows if dry_run else deletions.erase_now
    counts = _patiently(lambda: as_operator(lambda operator: erasing(operator, slug)))
    show(("table", "rows"), [(table, str(count)) for table, count in counts.items() if count])
    if not dry_run:
        for place, until in {**_statistics_left(), **REMAINS}.items():
            print(f"not gone at once: {place.replace('_', ' ')}: {until}", file=sys.stderr)


def _statistics_left() -> dict[str, str]:
    """Take new statistics for the planner. Where a table is being vacuumed meanwhile, what the operator does later."""
    left_out = as_operator(tenants.forget_statistics)
    for _ in range(ATTEMPTS - 1):
        if not left_out:
            return {}
        time.sleep(1)
        left_out = as_operator(tenants.forget_statistics)
    tables = ", ".join(f"recollect.{table}" for table in left_out)
    return {"statistics": f"until the owner of the tables has run: ANALYZE {tables}"} if left_out else {}


def _patiently(erase: Callable[[], dict[str, int]]) -> dict[str, int]:
    """Again where somebody was at work in the tenant at that moment: then nothing was erased. Raises Unavailable."""
    for _ in range(ATTEMPTS - 1):
        try:
            return erase()
        except Unavailable as error:
            if error.code is not ErrorCode.BUSY:
                raise
            time.sleep(1)
    return erase()


def _show(found: list[Tenant]) -> None:
    rows = [(t.slug, t.name, t.status, t.plan, f"{t.created_at:%Y-%m-%d}") for t in found]
    show(("slug", "name", "status", "plan", "created"), rows)
