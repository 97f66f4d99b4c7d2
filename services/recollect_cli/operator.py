"""`recollect operator …`: the operator API, the keys for it, and what operators did."""

from datetime import timedelta
from uuid import UUID

from cyclopts import App

from recollect.accounts.operator_keys import service as operator_keys
from recollect.settings.cells import HOME
from recollect_cli.operations import as_operator, pepper
from recollect_cli.operator_api import asked
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
    found = asked(lambda api: api.ask("GET", "/cells"))["items"]
    rows = [
        (
            cell["name"],
            "" if cell["tenants"] is None else str(cell["tenants"]),
            "" if cell["bytes"] is None else f"{cell['bytes'] / 1e9:.1f} GB",
            "away" if not cell["answers"] else f"lacks {cell['lacks'][0]}" if cell["lacks"] else "ready",
        )
        for cell in found
    ]
    show(("cell", "tenants", "size", "state"), rows)


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
    beside_home = None if cell == HOME else cell
    found = asked(lambda api: api.all_of("/log", subject=subject, cell=beside_home))
    show(
        ("at", "actor", "action", "subject", "details"),
        [(e["at"], e["actor"], e["action"], e["subject"], _told(e["details"])) for e in found],
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


def _told(details: dict[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in details.items())
