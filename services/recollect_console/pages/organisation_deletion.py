"""Deleting the organisation: what goes with it, asking for it as an owner, and taking that back."""

from typing import Any

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.response import Redirect

from recollect.accounts.deletion_requests import service as deletion_requests
from recollect.accounts.deletion_requests.model import RESTORABLE, WEEK
from recollect.accounts.identity import service as identity
from recollect.accounts.members import service as members
from recollect.accounts.members.model import subject_of
from recollect.accounts.people import notices
from recollect.accounts.usage import service as usage
from recollect.caller import Role
from recollect.errors import RecollectError
from recollect_console.access import ADMIN
from recollect_console.authors import MOST, authors_of
from recollect_console.paging import PAGE
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_gateway.callers.sign_in_attempts import take_for_own_account
from recollect_gateway.web.notices import send_notice
from recollect_http.client_addresses import site_of_client
from recollect_http.web.refusals import FormRefusal, refusal_of

DONE = {
    "requested": "The deletion is requested. Until it is due, any owner takes it back.",
    "kept": "The organisation is kept: the request for its deletion is taken back.",
}


class OrganisationDeletionPages(Controller):
    """Delete the organisation: admins see what goes with it, owners ask for it and take that back."""

    path = "/settings/delete"

    @get("/", opt=ADMIN)
    async def explain(self, visit: NamedDependency[Visit]) -> Response[str]:
        """What goes with the organisation, and the form or the request for its deletion."""
        return await _page(visit)

    @post("/", opt=ADMIN)
    async def request(self, visit: NamedDependency[Visit]) -> Redirect | Response[str]:
        """Ask for the deletion. An owner types the name of the organisation, and proves anew who they are."""
        databases = visit.services.databases
        await take_for_own_account(visit.request, visit.session.person_id)
        try:
            await deletion_requests.require_proof(databases, visit.session, visit.value("password"))
            async with visit.changing_tenant() as tx:
                request = await deletion_requests.request_deletion(tx, visit.session, visit.value("typed"))
                emails = await deletion_requests.list_notified(tx)
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        _notify(visit, emails, due=f"{request.due_at:%Y-%m-%d at %H:%M} UTC")
        return visit.go("settings/delete", done="requested")

    @post("/keep", opt=ADMIN)
    async def keep(self, visit: NamedDependency[Visit]) -> Redirect | Response[str]:
        """Take the request back."""
        try:
            async with visit.changing_tenant() as tx:
                await deletion_requests.take_back_deletion(tx, visit.session)
                emails = await deletion_requests.list_notified(tx)
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        _notify(visit, emails, due=None)
        return visit.go("settings/delete", done="kept")


async def _page(visit: Visit, refusal: FormRefusal | None = None) -> Response[str]:
    is_owner = visit.membership.role is Role.OWNER
    needs_password = is_owner and await deletion_requests.needs_password(visit.services.databases, visit.session)
    async with visit.reading_tenant() as tx:
        stored, has_more = await usage.list_stored(tx, limit=MOST)
        people = await members.list_members(tx, limit=MOST + 1)
        keys = await identity.list_keys(tx, limit=MOST + 1)
        request = await deletion_requests.find_request(tx)
        authors = await authors_of(tx, [subject_of(request.requested_by)] if request else [])
    context: dict[str, Any] = {
        "stored": stored[:PAGE],
        "counts": [_count(len(stored), is_cut=has_more), _count(len(people)), _count(len(keys))],
        "memories": sum(graph.entities + graph.facts + graph.observations for graph in stored),
        "requested": request,
        "requested_by": next(iter(authors.values()), None),
        "is_owner": is_owner,
        "needs_password": needs_password,
        "week": WEEK.days,
        "restorable": RESTORABLE.days,
        "typed": visit.value("typed"),
        "refusal": refusal,
    }
    return render(visit, "settings/delete.html", status=refusal.status if refusal else 200, done=DONE, **context)


def _notify(visit: Visit, emails: list[str], *, due: str | None) -> None:
    """Tell owners and admins by mail that the deletion was requested or taken back, if the deployment sends mail."""
    tenant, address = visit.caller.tenant, site_of_client(visit.request)
    send_notice(
        visit.request, lambda mailer: notices.notify_of_requested_deletion(mailer, emails, tenant, address, due=due)
    )


def _count(found: int, *, is_cut: bool = False) -> str:
    return f"more than {MOST}" if is_cut or found > MOST else f"{found:,}"
