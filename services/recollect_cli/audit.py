"""`recollect audit …`: the audit log of a tenant. Needs an admin's key."""

from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlencode
from uuid import UUID

import msgspec
from cyclopts import App, Parameter

from recollect_cli.files import STDIO, created
from recollect_cli.gateway import ApiKey, Url, connected
from recollect_cli.tables import AsJson, echo, show_items

app = App(name="audit", help="List and export the audit log of a tenant.")

LINES = "application/x-ndjson"

Actor = Annotated[str | None, Parameter(help="Only entries of this actor, such as key:… or person:…")]
Action = Annotated[str | None, Parameter(help="Only entries with this action, such as key.created.")]
On = Annotated[str | None, Parameter(name="--object", help="Only entries about this object, such as graph:…")]
Since = Annotated[
    datetime | None,
    Parameter(help="Only entries of this time or later, such as 2027-01-31; UTC unless an offset is given."),
]
Until = Annotated[datetime | None, Parameter(help="Only entries before this time; UTC unless an offset is given.")]


class AuditEntryView(msgspec.Struct, frozen=True):
    """The fields of an entry that commands show."""

    at: datetime
    actor: str
    action: str
    objects: list[str]
    address: str | None


@app.command(name="list")
def list_entries(
    *,
    actor: Actor = None,
    action: Action = None,
    on: On = None,
    since: Since = None,
    until: Until = None,
    before: UUID | None = None,
    limit: int = 50,
    json: AsJson = False,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """List the entries of the audit log, newest first.

    Parameters
    ----------
    before
        Only entries after the one with this id in the list: `next_cursor` of --json.
    limit
        Maximum number of entries, 1 to 200.
    """
    query = _query(actor, action, on, since, until, cursor=before, limit=limit)
    with connected(url, api_key) as gateway:
        answer = gateway.send("GET", f"/audit?{query}")
    show_items(
        answer,
        AuditEntryView,
        ("time", "actor", "action", "objects", "address"),
        lambda e: (f"{e.at:%Y-%m-%d %H:%M:%S}", e.actor, e.action, " ".join(e.objects), e.address or "-"),
        json=json,
        empty="There are no such entries.",
    )


@app.command
def export(
    file: str = STDIO,
    /,
    *,
    actor: Actor = None,
    action: Action = None,
    on: On = None,
    since: Since = None,
    until: Until = None,
    url: Url = None,
    api_key: ApiKey = None,
) -> None:
    """Export the audit log as JSON lines, newest entry first. The log records the export, too.

    Parameters
    ----------
    file
        File to write, complete or not at all; - writes to standard output.
    """
    query, count = _query(actor, action, on, since, until), 0
    with (
        connected(url, api_key) as gateway,
        gateway.download(f"/audit/export?{query}", media_type=LINES) as lines,
        created(file) as target,
    ):
        for chunk in lines.iter_bytes():
            target.write(chunk)
            count += chunk.count(b"\n")
    if file != STDIO:
        echo(f"{count} entries were exported to {file}.")


def _query(
    actor: str | None,
    action: str | None,
    on: str | None,
    since: datetime | None,
    until: datetime | None,
    **more: object,
) -> str:
    """The filters as the query of an address."""
    times = {"since": since, "until": until}
    parameters = {"actor": actor, "action": action, "object": on, **more} | {
        name: (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()
        for name, time in times.items()
        if time is not None
    }
    return urlencode({name: str(value) for name, value in parameters.items() if value is not None})
