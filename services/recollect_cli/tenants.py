"""`recollect tenants …`: the tenants of a deployment, by the operator API."""

import asyncio
import sys
import time
from typing import Annotated, Any
from urllib.parse import quote

from cyclopts import App, Parameter

from recollect.accounts.plans.model import UNLIMITED
from recollect.errors import ErrorCode, Unavailable
from recollect.retention.erasure.model import WHERE_COPIES_REMAIN
from recollect.settings.cells import HOME
from recollect_cli import moves
from recollect_cli.operator_api import OperatorApi, with_operator_api
from recollect_cli.tables import show

ATTEMPTS = 5
"""How often the planner's statistics are renewed at most: a table that is being vacuumed is left out each time."""

BUSY_SECONDS = 30.0
"""How long an erasure waits for a call that was under way when the tenant was suspended."""

app = App(name="tenants", help="Create, list, suspend, resume, move, delete and erase tenants, and assign plans.")


@app.command
def create(
    slug: str,
    *,
    name: str | None = None,
    plan: str = UNLIMITED,
    cell: str = HOME,
    owner_email: str | None = None,
    admin_key: str | None = None,
) -> None:
    """Create a tenant with a graph named `default`.

    Parameters
    ----------
    slug
        Slug of the tenant, used in URLs: a-z, 0-9 and -
    name
        Display name. Default: the slug.
    plan
        Plan of the tenant, as `recollect plans list` shows it.
    cell
        Cell that stores the tenant, as `recollect operator cells` shows it.
    owner_email
        E-mail address of the first owner. Prints an invitation link.
    admin_key
        Name of a first key with all scopes. Prints the key, which is shown only once.
    """
    credentials = {"owner_email": owner_email, "admin_key": admin_key}
    body = {"slug": slug, "name": name, "plan": plan, "cell": cell, **credentials}
    tenant = with_operator_api(lambda api: api.request("POST", "/tenants", body))
    _show([tenant])
    for credential in (tenant["invitation_link"], tenant["admin_key"]):
        if credential is not None:
            print(credential)


@app.command(name="list")
def list_tenants() -> None:
    """List all tenants, sorted by slug."""
    _show(with_operator_api(lambda api: api.list_all("/tenants")))


@app.command
def set_plan(slug: str, plan: str) -> None:
    """Assign another plan to a tenant. Applies from its next call on.

    A tenant that has more than the plan allows keeps its data, but can only delete until it is within the limits.

    Parameters
    ----------
    slug
        The tenant's slug.
    plan
        Name of the plan.
    """
    _show([with_operator_api(lambda api: api.request("PUT", f"{_path(slug)}/plan", {"plan": plan}))])


@app.command
def suspend(slug: str, *, read_only: bool = False) -> None:
    """Suspend a tenant: its credentials are no longer accepted. Its data stays.

    Parameters
    ----------
    slug
        The tenant's slug.
    read_only
        Only refuse writes. Reads are still accepted.
    """
    kind = {"kind": "read_only" if read_only else "whole"}
    _show([with_operator_api(lambda api: api.request("PUT", f"{_path(slug)}/suspension", kind))])


@app.command
def resume(slug: str) -> None:
    """Resume a suspended tenant: its credentials are accepted again.

    Parameters
    ----------
    slug
        The tenant's slug.
    """
    _show([with_operator_api(lambda api: api.request("DELETE", f"{_path(slug)}/suspension"))])


@app.command
def delete(slug: str, *, grace_days: float | None = None, yes: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Delete a tenant: suspend it, and erase it after a grace period. Until then it can be restored.

    Parameters
    ----------
    slug
        The tenant's slug.
    grace_days
        Grace period in days. Default: RECOLLECT_TENANT_DELETION_GRACE_DAYS. See also `recollect tenants erase`.
    yes
        Confirm the deletion.
    """
    if not yes:
        raise SystemExit(
            f"This refuses every credential of {slug!r} at once, and erases its data after the grace period. Confirm "
            "with --yes."
        )
    _show([with_operator_api(lambda api: api.request("DELETE", _path(slug), grace_days=grace_days))])


@app.command
def restore(slug: str) -> None:
    """Restore a deleted tenant during its grace period, as it was before.

    Parameters
    ----------
    slug
        The tenant's slug.
    """
    _show([with_operator_api(lambda api: api.request("POST", f"{_path(slug)}/restore"))])


@app.command
def receipts(slug: str | None = None, *, cell: str = HOME) -> None:
    """List the receipts of erased tenants: the time, the number of rows, and the SHA-256 of each receipt.

    Parameters
    ----------
    slug
        Only tenants that had this slug.
    cell
        Cell that stored the tenants.
    """
    receipts = with_operator_api(lambda api: api.list_all("/receipts", slug=slug, cell=_cell_parameter(cell)))
    rows = [(r["id"], r["slug"], r["erased_at"], str(sum(r["rows"].values())), r["sha256"]) for r in receipts]
    show(("id", "slug", "erased", "rows", "sha256"), rows, empty="There are no such receipts.")


@app.command
def erase(slug: str, *, dry_run: bool = False, yes: bool = False) -> None:
    """Erase a tenant at once, with all its data, keys and logs, and print the number of rows of each table.

    Parameters
    ----------
    slug
        The tenant's slug.
    dry_run
        Only count the rows.
    yes
        Confirm the erasure. It cannot be undone.
    """
    if not (dry_run or yes):
        raise SystemExit(f"This permanently deletes {slug!r}. Confirm with --yes, or count its rows with --dry-run.")
    if dry_run:
        _show_counts(with_operator_api(lambda api: api.request("GET", f"{_path(slug)}/rows"))["rows"])
        return
    rows, left_out = with_operator_api(lambda api: _erase(api, slug))
    _show_counts(rows)
    statistics = {"statistics": _to_analyze(left_out)} if left_out else {}
    for location, until in {**statistics, **WHERE_COPIES_REMAIN}.items():
        print(f"not erased yet: {location.replace('_', ' ')}: {until}", file=sys.stderr)


async def _erase(api: OperatorApi, slug: str) -> tuple[dict[str, int], list[str]]:
    """Delete without grace, step by step; returns the deleted rows, and the tables whose statistics were left out."""
    deleted = await api.request("DELETE", _path(slug), grace_days=0, confirm=slug)
    answer: dict[str, Any] = {"state": "more"}
    give_up_at = time.monotonic() + BUSY_SECONDS
    while answer["state"] != "erased":
        if answer["state"] == "busy":
            await asyncio.sleep(0.2)
        try:
            answer = await api.request("POST", f"/erasures/{deleted['id']}")
        except Unavailable as error:
            if error.code is not ErrorCode.BUSY:
                raise
            answer = {"state": "busy"}
        if answer["state"] == "busy" and time.monotonic() > give_up_at:
            raise Unavailable(
                "A call of this tenant is still running. A worker continues the erasure.", code=ErrorCode.BUSY
            )
    rows: dict[str, int] = answer["receipt"]["rows"]
    return rows, await _renew_statistics(api, deleted["cell"])


async def _renew_statistics(api: OperatorApi, cell: str) -> list[str]:
    """Renew the planner's statistics; returns the tables for which no attempt succeeded."""
    left_out: list[str] = []
    for attempt in range(ATTEMPTS):
        if attempt:
            await asyncio.sleep(1)
        left_out = (await api.request("POST", "/statistics", cell=_cell_parameter(cell)))["left_out"]
        if not left_out:
            break
    return left_out


def _to_analyze(left_out: list[str]) -> str:
    tables = ", ".join(f"recollect.{table}" for table in left_out)
    return f"until the owner of the tables has run ANALYZE {tables}"


app.command(moves.move)
app.command(moves.list_moves, name="moves")


def _cell_parameter(cell: str) -> str | None:
    """The query parameter for a cell; None for home, which is the default."""
    return None if cell == HOME else cell


def _path(slug: str) -> str:
    return f"/tenants/{quote(slug, safe='')}"


def _show_counts(rows: dict[str, int]) -> None:
    show(("table", "rows"), [(table, str(count)) for table, count in rows.items() if count])


def _show(tenants: list[dict[str, Any]]) -> None:
    columns: tuple[str, ...] = ("slug", "name", "status", "plan", "created", "erased at")
    rows: list[tuple[str, ...]] = [
        (t["slug"], t["name"], t["status"], t["plan"], t["created_at"][:10], (t["erase_at"] or "")[:16])
        for t in tenants
    ]
    if any(t.get("deletion_due_at") for t in tenants):
        columns = (*columns, "deletion requested for")
        rows = [(*row, (t.get("deletion_due_at") or "")[:16]) for row, t in zip(rows, tenants, strict=True)]
    if any(t["cell"] != HOME for t in tenants):
        columns, rows = (*columns, "cell"), [(*row, t["cell"]) for row, t in zip(rows, tenants, strict=True)]
    show(columns, rows, empty="There are no tenants.")
