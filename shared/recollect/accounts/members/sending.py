"""Inviting somebody, and telling them: by mail where a deployment sends any, else by a link to be handed over.

Where mail is sent, no tenant sees a link: who opens it makes the account of an address, and has shown with it that they
read its mail.
"""

from dataclasses import dataclass

from recollect.accounts.members import service as members
from recollect.accounts.members.model import Invitation
from recollect.caller import Caller, Role
from recollect.errors import ErrorCode, TooManyRequests, Unavailable
from recollect.platform.db import Database
from recollect.platform.mail import Letter, Mailer, MailFailed
from recollect.settings import Settings

RETRY_SECONDS = 3600
"""When to try again, as a tenant is told that has sent as many as it may in a day."""


@dataclass(frozen=True, slots=True)
class SentInvitation:
    """An invitation that was sent, or the link that is to be given to whom it is for; `link` None says it was sent."""

    invitation: Invitation
    link: str | None


async def invite_and_tell(
    db: Database, caller: Caller, email: str, role: Role, *, mailer: Mailer | None, settings: Settings
) -> SentInvitation:
    """Invite, and send the invitation once it is stored; `mailer` None leaves the link to show.

    It is shown to operators also where it is not sent. Others are told so: raises TooManyRequests for more than a
    tenant may send in a day, Unavailable where it cannot be sent, and is void then; and as `members.invite` does.
    """
    pepper, per_day = settings.pepper, settings.invitation_mails_per_day
    async with db.transaction(caller) as tx:
        issued = await members.invite(tx, email, role, pepper=pepper)
        may_send = mailer is not None and await members.claim_mail(tx, issued.invitation.id, per_day=per_day)
        if mailer is not None and not may_send and not caller.is_operator:
            raise TooManyRequests(
                f"A tenant sends {per_day} invitations in 24 hours. Invite the others later.",
                code=ErrorCode.TOO_MANY_INVITATIONS,
                seconds=RETRY_SECONDS,
            )
    link = f"{settings.base_url}/join/{issued.secret}"
    if mailer is None or not may_send:
        return SentInvitation(issued.invitation, link)
    try:
        await mailer.send(invitation_letter(issued.invitation, caller.tenant, link))
    except MailFailed:
        if caller.is_operator:
            return SentInvitation(issued.invitation, link)
        async with db.transaction(caller) as tx:
            await members.give_up_mail(tx, issued.invitation.id)
        raise Unavailable(
            "The invitation cannot be sent by mail now, and is void. Invite again in a while.",
            code=ErrorCode.MAIL_NOT_SENT,
        ) from None
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
