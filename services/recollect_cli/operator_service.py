"""`recollect operator …`: the operator API, its keys and its log, and the cells."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from cyclopts import App, Parameter

from recollect.accounts.audit.model import named
from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.operator_log import service as operator_log
from recollect.accounts.operator_log.model import OperatorAction
from recollect.cells.directory import service as directory
from recollect.errors import InvalidInput
from recollect.postgres.operator_sessions import Operator
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect_cli.operations import as_operator, pepper
from recollect_cli.operator_api import with_operator_api
from recollect_cli.tables import echo, show

app = App(name="operator", help="Serve the operator API, manage its keys, list cells, and show its log.")
keys = App(name="keys", help="Create, list and revoke keys of the operator API. Needs the owner's database connection.")
app.command(keys)


@app.command
def serve() -> None:
    """Serve the operator API and its pages at RECOLLECT_OPERATOR_HOST and RECOLLECT_OPERATOR_PORT."""
    from recollect_operator.server import main

    main()


@app.command
def cells() -> None:
    """List the cells (PostgreSQL clusters), with the number of tenants, the size and the state of each."""
    cell_list = with_operator_api(lambda api: api.request("GET", "/cells"))["items"]
    rows = [
        (
            cell["name"],
            "" if cell["tenants"] is None else str(cell["tenants"]),
            "" if cell["bytes"] is None else f"{cell['bytes'] / 1e9:.1f} GB",
            "away" if not cell["answers"] else f"lacks {cell['lacks'][0]}" if cell["lacks"] else "ready",
        )
        for cell in cell_list
    ]
    show(("cell", "tenants", "size", "state"), rows)


@app.command
def forget_cell(name: str, *, yes: Annotated[bool, Parameter(negative=())] = False) -> None:
    """Free the slugs of a removed cell: those of tenants that were erased there.

    Parameters
    ----------
    name
        The removed cell. RECOLLECT_CELLS must no longer contain it.
    yes
        Free the slugs; without it, only list them. If a tenant still exists there, its slug no longer leads to it.
    """
    if name in Settings().cell_names:
        raise InvalidInput(f"RECOLLECT_CELLS contains {name!r}: remove it there first.", path="name")
    if not yes:
        for slug in as_operator(lambda home: directory.list_slugs(home, name)):
            print(slug)
        raise SystemExit(
            f"These are the slugs of {name!r}. If none of its tenants exists any more, free them with --yes."
        )

    async def forget(home: Operator) -> list[str]:
        async with home.transaction():
            slugs = await directory.forget_cell(home, name)
            await operator_log.record(home, OperatorAction.CELL_FORGOTTEN, named("cell", name), slugs=len(slugs))
        return slugs

    print(f"slugs freed: {len(as_operator(forget))}")


@app.command
def log(*, subject: str | None = None, cell: str = HOME) -> None:
    """List the entries of the operators' log, newest first.

    Parameters
    ----------
    subject
        Only entries about this subject, such as tenant:acme.
    cell
        Cell whose log to show. Each cell keeps the entries about its tenants.
    """
    other_cell = None if cell == HOME else cell
    entries = with_operator_api(lambda api: api.list_all("/log", subject=subject, cell=other_cell))
    show(
        ("time", "actor", "action", "subject", "details"),
        [(e["at"], e["actor"], e["action"], e["subject"], _details(e["details"])) for e in entries],
        empty="There are no such entries.",
    )


@keys.command
def create(name: str, *, days: float = 90) -> None:
    """Create a key and print it. It is shown only once.

    Parameters
    ----------
    name
        Name of the key, which says whose it is or what it is for.
    days
        Lifetime in days, at most 366.
    """
    secret = pepper()
    lifetime = timedelta(days=days)
    print(as_operator(lambda operator: operator_keys.create_key(operator, name, lifetime=lifetime, pepper=secret))[1])


@keys.command(name="list")
def list_keys() -> None:
    """List all keys, including expired and revoked ones."""
    found = as_operator(operator_keys.list_keys)
    rows = [
        (
            str(key.id),
            key.name,
            key.hint,
            f"{key.expires_at:%Y-%m-%d}",
            "revoked" if key.revoked_at else "",
            f"{key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never",
        )
        for key in found
    ]
    show(("id", "name", "key", "expires", "revoked", "last used"), rows, empty="There are no keys.")


@keys.command
def revoke(key_id: UUID) -> None:
    """Revoke a key. It is no longer accepted.

    Parameters
    ----------
    key_id
        The key's id, from `recollect operator keys list`.
    """
    as_operator(lambda operator: operator_keys.revoke_key(operator, key_id))
    echo(f"The key {key_id} was revoked.")


def _details(details: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in details.items())
