"""`recollect operator …`: the operator API, the keys for it, and what operators did."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from cyclopts import App, Parameter

from recollect.accounts.audit.model import named
from recollect.accounts.operator_keys import service as operator_keys
from recollect.accounts.operator_log import service as operator_log
from recollect.accounts.operator_log.model import OperatorAction
from recollect.errors import InvalidInput
from recollect.platform.directory import service as directory
from recollect.platform.operator_sessions import Operator
from recollect.settings import Settings
from recollect.settings.cells import HOME
from recollect_cli.operations import as_operator, pepper
from recollect_cli.operator_api import with_operator_api
from recollect_cli.tables import show

app = App(name="operator", help="Serve the operator API, make keys for it, list cells, and read its log.")
keys = App(name="keys", help="Create, list and revoke operators' keys, on the owner's connection.")
app.command(keys)


@app.command
def serve() -> None:
    """Serve the operator API at RECOLLECT_OPERATOR_HOST and RECOLLECT_OPERATOR_PORT."""
    from recollect_operator.server import main

    main()


@app.command
def cells() -> None:
    """The PostgreSQL clusters of the deployment: how much is in each, and whether it answers and is migrated."""
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
    """Free the slugs of a cell that is no more: those of tenants that were erased there, and no tenant's by now.

    Parameters
    ----------
    name
        The cell, which RECOLLECT_CELLS does not name any more.
    yes
        Do it: a tenant that is still there is not found again by its slug. Without it, the slugs are told.
    """
    if name in Settings().cell_names:
        raise InvalidInput(f"RECOLLECT_CELLS names {name!r}: take it out first.", path="name")
    if not yes:
        for slug in as_operator(lambda home: directory.list_slugs(home, name)):
            print(slug)
        raise SystemExit(f"Those are the slugs of {name!r}. Say --yes if its tenants are no more.")

    async def forget(home: Operator) -> list[str]:
        async with home.transaction():
            slugs = await directory.forget_cell(home, name)
            await operator_log.record(home, OperatorAction.CELL_FORGOTTEN, named("cell", name), slugs=len(slugs))
        return slugs

    print(f"{len(as_operator(forget))} slugs are free.")


@app.command
def log(*, subject: str | None = None, cell: str = HOME) -> None:
    """What operators did, newest first.

    Parameters
    ----------
    subject
        Only what was done to it, such as tenant:acme.
    cell
        The cell that it is in: each keeps what was done to its tenants.
    """
    other_cell = None if cell == HOME else cell
    entries = with_operator_api(lambda api: api.list_all("/log", subject=subject, cell=other_cell))
    show(
        ("at", "actor", "action", "subject", "details"),
        [(e["at"], e["actor"], e["action"], e["subject"], _details(e["details"])) for e in entries],
    )


@keys.command
def create(name: str, *, days: float = 90) -> None:
    """Make a key and print it: it is shown this once.

    Parameters
    ----------
    name
        Whose it is, or what for.
    days
        How long it holds: up to 366.
    """
    secret = pepper()
    lifetime = timedelta(days=days)
    print(as_operator(lambda operator: operator_keys.create_key(operator, name, lifetime=lifetime, pepper=secret))[1])


@keys.command(name="list")
def list_keys() -> None:
    """Every key, void ones too."""
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
    show(("id", "name", "key", "expires", "revoked", "last used"), rows)


@keys.command
def revoke(key_id: UUID) -> None:
    """Make a key void from now on.

    Parameters
    ----------
    key_id
        Its id, from `recollect operator keys list`.
    """
    as_operator(lambda operator: operator_keys.revoke_key(operator, key_id))


def _details(details: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in details.items())
