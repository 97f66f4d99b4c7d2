"""Inviting somebody, and telling them: by mail where a deployment sends any, else by a link to be handed over.

Where mail is sent, no tenant sees a link: who opens it makes the account of an address, and has shown with it that they
read its mail.
"""

from dataclasses import dataclass

import anyio

from recollect.accounts.members import service as members
from recollect.accounts.members.model import Invitation
from recollect.accounts.people.model import normalized_email
from recollect.caller import Caller, Role
from recollect.errors import ErrorCode, InvalidInput, TooManyRequests, Unavailable
from recollect.platform.db import Database
from recollect.platform.mail import Letter, Mailer, MailFailed, is_sendable
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

    Earlier invitations of the address are void once this one is sent, or its link is there to show, and stand until
    then. It is shown to operators also where it is not sent. Others are told so: raises TooManyRequests for more than a
    tenant may send in a day, Unavailable where it cannot be sent, and is void then, InvalidInput where it never can be;
    and as `members.invite` does.
    """
    if mailer is not None and not caller.is_operator and not is_sendable(normalized_email(email)):
        raise InvalidInput("Invitations go by mail, and to addresses of plain ASCII characters alone", path="email")
    pepper, per_day = settings.pepper, settings.invitation_mails_per_day
    async with db.transaction(caller) as tx:
        issued = await members.begin_invitation(tx, email, role, pepper=pepper)
        invitation = issued.invitation
        may_send = mailer is not None and await members.claim_mail(tx, invitation.id, per_day=per_day)
        if mailer is not None and not may_send and not caller.is_operator:
            raise TooManyRequests(
                f"A tenant sends {per_day} invitations in 24 hours. Invite the others later.",
                code=ErrorCode.TOO_MANY_INVITATIONS,
                seconds=RETRY_SECONDS,
            )
        if not may_send:
            await members.end_earlier_invitations(tx, invitation.id)
    link = f"{settings.base_url}/join/{issued.secret}"
    if mailer is None or not may_send:
        return SentInvitation(invitation, link)
    with anyio.CancelScope(shield=True):  # What is sent counts also where whoever asked has left.
        is_sent = await _send(db, caller, invitation, link, mailer)
    if not is_sent and not caller.is_operator:
        raise Unavailable(
            "The invitation cannot be sent by mail now, and is void. One from before stands. Invite again in a while.",
            code=ErrorCode.MAIL_NOT_SENT,
        )
    return SentInvitation(invitation, None if is_sent else link)


async def _send(db: Database, caller: Caller, invitation: Invitation, link: str, mailer: Mailer) -> bool:
    """Send an invitation that counts as sent; whether it could be. One that nobody is told of is void."""
    is_sent = True
    try:
        await mailer.send(invitation_letter(invitation, caller.tenant, link))
    except MailFailed:
        is_sent = False
    async with db.transaction(caller) as tx:
        if is_sent or caller.is_operator:
            await members.end_earlier_invitations(tx, invitation.id)
        else:
            await members.give_up_mail(tx, invitation.id)
            tx.undo_act()
    return is_sent


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
