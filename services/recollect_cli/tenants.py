"""`recollect tenants …`: the organisations of a deployment, by the operator API."""

import asyncio
import sys
import time
from typing import Any
from urllib.parse import quote

from cyclopts import App

from recollect.accounts.plans.model import UNLIMITED
from recollect.errors import ErrorCode, Unavailable
from recollect.retention.erasure.model import REMAINS
from recollect.settings.cells import HOME
from recollect_cli import moves
from recollect_cli.operator_api import OperatorApi, with_operator_api
from recollect_cli.tables import show

ATTEMPTS = 5
"""How often the planner's statistics are renewed at most: a table that is being vacuumed is left out each time."""

BUSY_SECONDS = 30.0
"""How long an erasure waits for a call that was under way when the tenant was suspended."""

app = App(name="tenants", help="Create, list, suspend, resume, delete and erase tenants, and give them plans.")


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
    """Make a tenant with its graph `default`.

    Parameters
    ----------
    slug
        Its place in addresses: a-z 0-9 -
    name
        Its name; default: the slug.
    plan
        What it may have and ask for, as `recollect plans list` tells.
    cell
        Where its data is, as `recollect operator cells` tells.
    owner_email
        Invite its first owner, and print the link.
    admin_key
        Make its first key, which is called so, and print it: it is shown this once.
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
    """Every tenant, by slug."""
    _show(with_operator_api(lambda api: api.list_all("/tenants")))


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
    _show([with_operator_api(lambda api: api.request("PUT", f"{_path(slug)}/plan", {"plan": plan}))])


@app.command
def suspend(slug: str, *, read_only: bool = False) -> None:
    """Accept none of the tenant's credentials from now on; its data stays.

    Parameters
    ----------
    slug
        Its place in addresses.
    read_only
        They go on reading, and nothing is written.
    """
    kind = {"kind": "read_only" if read_only else "whole"}
    _show([with_operator_api(lambda api: api.request("PUT", f"{_path(slug)}/suspension", kind))])


@app.command
def resume(slug: str) -> None:
    """Accept the tenant's credentials again, to read and to write."""
    _show([with_operator_api(lambda api: api.request("DELETE", f"{_path(slug)}/suspension"))])


@app.command
def delete(slug: str, *, grace_days: float | None = None) -> None:
    """Suspend a tenant whole, and have a worker erase it when its grace is over. Until then it can be restored.

    Parameters
    ----------
    slug
        Its place in addresses.
    grace_days
        How long; default: RECOLLECT_TENANT_DELETION_GRACE_DAYS. To erase at once is `recollect tenants erase`.
    """
    _show([with_operator_api(lambda api: api.request("DELETE", _path(slug), grace_days=grace_days))])


@app.command
def restore(slug: str) -> None:
    """Undo a deletion, while its grace lasts: the tenant is what it was before."""
    _show([with_operator_api(lambda api: api.request("POST", f"{_path(slug)}/restore"))])


@app.command
def receipts(slug: str | None = None, *, cell: str = HOME) -> None:
    """What is left of tenants that were erased: when, how many rows, and the SHA-256 of the receipt.

    Parameters
    ----------
    slug
        Only of tenants that were called so.
    cell
        The cell that they were in.
    """
    receipts = with_operator_api(lambda api: api.list_all("/receipts", slug=slug, cell=_cell_parameter(cell)))
    rows = [(r["id"], r["slug"], r["erased_at"], str(sum(r["rows"].values())), r["sha256"]) for r in receipts]
    show(("id", "slug", "erased", "rows", "sha256"), rows)


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
    if dry_run:
        _show_counts(with_operator_api(lambda api: api.request("GET", f"{_path(slug)}/rows"))["rows"])
        return
    rows, left_out = with_operator_api(lambda api: _erase(api, slug))
    _show_counts(rows)
    statistics = {"statistics": _to_analyze(left_out)} if left_out else {}
    for place, until in {**statistics, **REMAINS}.items():
        print(f"not gone at once: {place.replace('_', ' ')}: {until}", file=sys.stderr)


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
            raise Unavailable("Somebody is at work in this tenant. A worker goes on with it.", code=ErrorCode.BUSY)
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
    return f"until the owner of the tables has run: ANALYZE {tables}"


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
    if any(t["cell"] != HOME for t in tenants):
        columns, rows = (*columns, "cell"), [(*row, t["cell"]) for row, t in zip(rows, tenants, strict=True)]
    show(columns, rows)
