"""The audit log: who did what to the organisation, filtered by what is in the address."""

import json
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any

from litestar import Controller, Response, get
from litestar.di import NamedDependency
from litestar.params import QueryParameter

from recollect.accounts.audit import service as audit
from recollect.accounts.audit.model import Action, AuditEntry, AuditFilter
from recollect.accounts.members import service as members
from recollect.accounts.members.model import subject_of
from recollect.errors import InvalidInput
from recollect.postgres.transactions import Transaction
from recollect_console.access import ADMIN
from recollect_console.authors import MOST, authors_of
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_http.pages import IdCursor
from recollect_http.requests.parsing import check_text

Filter = Annotated[str, QueryParameter(max_length=200)]
OnObject = Annotated[str, QueryParameter(name="object", max_length=200)]
NAMES = ("actor", "action", "object", "since", "until")


class AuditPages(Controller):
    """The acts of administration, for admins."""

    path = "/audit"

    @get("/", opt=ADMIN)
    async def show(
        self,
        visit: NamedDependency[Visit],
        actor: Filter = "",
        action: Filter = "",
        on: OnObject = "",
        since: Filter = "",
        until: Filter = "",
        cursor: IdCursor = None,
    ) -> Response[str]:
        """One page of the entries that pass every filter, newest first."""
        given = dict(zip(NAMES, (actor, action, on, since, until), strict=True))
        context: dict[str, Any] = {"acts": [], "authors": {}, "paging": None, "fault": "", "filters": given}
        async with visit.reading_tenant() as tx:
            context["actors"] = await _actors(tx)
            try:
                found = await audit.list_entries(tx, _filter(given), before=cursor, limit=PAGE + 1)
            except InvalidInput as error:
                return _page(visit, 400, **(context | {"fault": error.message}))
            authors = await authors_of(tx, (entry.actor for entry in found if ":" in entry.actor))
        shown = found[:PAGE]
        paging = paging_of(visit, shown[-1].id if len(found) > PAGE else None)
        acts = [(entry, _details(entry)) for entry in shown]
        return _page(visit, 200, **(context | {"acts": acts, "authors": authors, "paging": paging}))


def _page(visit: Visit, status: int, **context: Any) -> Response[str]:
    actions = [("", "All"), *((action.value, action.value) for action in Action)]
    return render(visit, "audit/list.html", status=status, actions=actions, **context)


async def _actors(tx: Transaction) -> list[tuple[str, str]]:
    """The members by which the log can be filtered, as options."""
    found = await members.list_members(tx, limit=MOST)
    return [(subject_of(member.person_id), member.name) for member in found]


def _filter(given: dict[str, str]) -> AuditFilter:
    """The filter of the address. Raises InvalidInput."""
    check_text({"actor": given["actor"], "object": given["object"]})
    until = _day(given["until"], "until")
    return AuditFilter(
        given["actor"] or None,
        _action(given["action"]),
        given["object"] or None,
        _day(given["since"], "since"),
        until and until + timedelta(days=1),
    )


def _action(given: str) -> Action | None:
    try:
        return Action(given) if given else None
    except ValueError:
        raise InvalidInput("There is no such kind of act", path="action") from None


def _day(given: str, path: str) -> datetime | None:
    """The beginning of a day in UTC. Raises InvalidInput."""
    try:
        return datetime.combine(date.fromisoformat(given), time(), UTC) if given else None
    except ValueError:
        raise InvalidInput("A day is written like 2026-11-28", path=path) from None


def _details(entry: AuditEntry) -> list[tuple[str, str]]:
    """The details of an entry, each as text."""
    return [
        (name.replace("_", " "), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in entry.details.items()
    ]
