"""Invitations: people who are asked to join, by mail, or by a link where the deployment sends none."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from litestar import Controller, Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath
from litestar.response import Redirect

from recollect.accounts.members import service as members
from recollect.accounts.members.model import Invitation
from recollect.accounts.members.sending import SentInvitation, invite_and_send
from recollect.errors import RecollectError
from recollect_console.access import ADMIN
from recollect_console.authors import authors_of
from recollect_console.pages.people import role_of, roles_to_give
from recollect_console.paging import PAGE, paging_of
from recollect_console.rendering import render
from recollect_console.visit import Visit
from recollect_http.pages import IdCursor
from recollect_http.web.refusals import FormRefusal, refusal_of

DONE = {"sent": "The invitation is sent.", "revoked": "The invitation is revoked: its link no longer works."}


class InvitationPages(Controller):
    """Invite people, invite them anew, and revoke invitations."""

    path = "/people/invitations"
    opt = ADMIN

    @get("/")
    async def show(self, visit: NamedDependency[Visit], cursor: IdCursor = None) -> Response[str]:
        """One page of the invitations, oldest first."""
        return await _page(visit, after=cursor)

    @post("/", status_code=200)
    async def invite(self, visit: NamedDependency[Visit]) -> Redirect | Response[str]:
        """Invite an address; earlier invitations of it end. Where no mail is sent, the link is shown this once."""
        state = visit.request.app.state
        try:
            sent = await invite_and_send(
                visit.db,
                visit.caller,
                visit.value("email"),
                role_of(visit),
                mailer=state.mailer,
                settings=state.settings,
            )
        except RecollectError as error:
            return await _page(visit, refusal_of(error))
        return visit.go("people/invitations", done="sent") if sent.link is None else await _page(visit, sent=sent)

    @post("/{invitation_id:uuid}/revoke")
    async def revoke(self, visit: NamedDependency[Visit], invitation_id: FromPath[UUID]) -> Redirect:
        """Revoke an invitation."""
        async with visit.changing_tenant() as tx:
            await members.revoke_invitation(tx, invitation_id)
        return visit.go("people/invitations", done="revoked")


async def _page(
    visit: Visit, refusal: FormRefusal | None = None, *, after: UUID | None = None, sent: SentInvitation | None = None
) -> Response[str]:
    async with visit.reading_tenant() as tx:
        found = await members.list_invitations(tx, after=after, limit=PAGE + 1)
        authors = await authors_of(tx, (invitation.created_by for invitation in found))
    shown, now = found[:PAGE], datetime.now(UTC)
    context: dict[str, Any] = {
        "invitations": [(invitation, _state(invitation, now)) for invitation in shown],
        "authors": authors,
        "roles": roles_to_give(visit),
        "paging": paging_of(visit, shown[-1].id if len(found) > PAGE else None),
        "sends_mail": visit.request.app.state.mailer is not None,
        "sent": sent,
        "entered": {"email": visit.value("email"), "role": visit.value("role")}
        if refusal
        else {"email": "", "role": "member"},
        "fault": refusal.text if refusal else "",
    }
    return render(visit, "people/invitations.html", status=refusal.status if refusal else 200, done=DONE, **context)


def _state(invitation: Invitation, now: datetime) -> str:
    if invitation.accepted_at is not None:
        return "accepted"
    if invitation.revoked_at is not None:
        return "revoked"
    return "open" if invitation.expires_at > now else "expired"
