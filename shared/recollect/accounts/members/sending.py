"""Inviting somebody, and telling them: by mail where it can be sent, else by a link that is shown to who invites."""

from dataclasses import dataclass

from recollect.accounts.members import service as members
from recollect.accounts.members.model import Invitation
from recollect.caller import Caller, Role
from recollect.platform.db import Database
from recollect.platform.mail import Letter, Mailer, MailFailed
from recollect.settings import Settings


@dataclass(frozen=True, slots=True)
class SentInvitation:
    """An invitation that was sent, or the link that is to be given to whom it is for; `link` None says it was sent."""

    invitation: Invitation
    link: str | None


async def invite_and_tell(
    db: Database, caller: Caller, email: str, role: Role, *, mailer: Mailer | None, settings: Settings
) -> SentInvitation:
    """Invite, and send the invitation once it is stored; `mailer` None, or one that fails, leaves the link to show.

    Raises as `members.invite` does.
    """
    pepper = settings.pepper
    async with db.transaction(caller) as tx:
        issued = await members.invite(tx, email, role, pepper=pepper)
        may_send = mailer is not None and await members.claim_mail(
            tx, issued.invitation.id, per_day=settings.invitation_mails_per_day
        )
    link = f"{settings.base_url}/join/{issued.secret}"
    if mailer is None or not may_send:
        return SentInvitation(issued.invitation, link)
    try:
        await mailer.send(invitation_letter(issued.invitation, caller.tenant, link))
    except MailFailed:
        return SentInvitation(issued.invitation, link)
    return SentInvitation(issued.invitation, None)


def invitation_letter(invitation: Invitation, tenant: str, link: str) -> Letter:
    """What the invited person reads. It names the tenant by its slug alone: no text that members chose is in it."""
    return Letter(
        to=invitation.email,
        subject=f"You are invited to {tenant} on Recollect",
        text=(
            f"You are invited to join the organisation {tenant} on Recollect as {invitation.role}.\n\n"
            f"Open this link to accept:\n\n{link}\n\n"
            f"It is for you alone, is used once, and holds until {invitation.expires_at:%Y-%m-%d %H:%M} UTC.\n"
            "If you did not expect it, there is nothing to do.\n"
        ),
    )
