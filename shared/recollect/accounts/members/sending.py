"""Inviting people: by mail where a deployment sends mail, else by a link that the inviter hands over.

Where mail is sent, nobody but the address sees the link: whoever opens it reads the mail of the address, and creates
its account. A link that is shown to the inviter, or to an operator, proves nothing: the account that is made by it is
of the inviting tenant alone.
"""

from dataclasses import dataclass

import anyio

from recollect.accounts.members import service as members
from recollect.accounts.members.model import Invitation
from recollect.accounts.people.model import normalized_email
from recollect.caller import Caller, Role
from recollect.errors import ErrorCode, InvalidInput, TooManyRequests, Unavailable
from recollect.outbound.mail import Email, Mailer, MailFailed, is_sendable
from recollect.postgres.tenant_database import TenantDatabase
from recollect.settings import Settings

RETRY_SECONDS = 3600
"""The `Retry-After` for a tenant that has sent as many invitations as it may in a day."""


@dataclass(frozen=True, slots=True)
class SentInvitation:
    """An invitation, and the link to hand to the invited person; `link` None: it was sent by mail."""

    invitation: Invitation
    link: str | None


async def invite_and_send(
    db: TenantDatabase, caller: Caller, email: str, role: Role, *, mailer: Mailer | None, settings: Settings
) -> SentInvitation:
    """Invite, and send the invitation once it is stored; with `mailer` None the link is returned instead.

    Earlier invitations of the address stay valid until this one is sent, or its link is returned. Operators also get
    the link where sending fails. For others it raises TooManyRequests beyond the number that a tenant may send in a
    day, Unavailable where sending fails (then the invitation is void), and InvalidInput where the address cannot get
    mail; and as `members.invite` does.
    """
    if mailer is not None and not caller.is_operator and not is_sendable(normalized_email(email)):
        raise InvalidInput("Invitations are sent by mail, and only to addresses of ASCII characters", path="email")
    pepper, per_day = settings.pepper, settings.invitation_mails_per_day
    async with db.transaction(caller) as tx:
        issued = await members.begin_invitation(tx, email, role, pepper=pepper)
        invitation = issued.invitation
        may_send = mailer is not None and await members.claim_mail(tx, invitation.id, per_day=per_day)
        if mailer is not None and not may_send and not caller.is_operator:
            raise TooManyRequests(
                f"A tenant can send {per_day} invitations in 24 hours, and this tenant has sent them. Send further "
                "ones later.",
                code=ErrorCode.TOO_MANY_INVITATIONS,
                seconds=RETRY_SECONDS,
            )
        if not may_send:
            await members.end_earlier_invitations(tx, invitation.id)
    link = f"{settings.base_url}/join/{issued.secret}"
    if mailer is None or not may_send:
        return SentInvitation(invitation, link)
    with anyio.CancelScope(shield=True):  # A sent invitation must be recorded even if the caller has left.
        is_sent = await _send(db, caller, invitation, link, mailer)
    if not is_sent and not caller.is_operator:
        raise Unavailable(
            "The invitation could not be sent by mail and is void. An earlier invitation is still valid. Invite again "
            "later.",
            code=ErrorCode.MAIL_NOT_SENT,
        )
    return SentInvitation(invitation, None if is_sent else link)


async def _send(db: TenantDatabase, caller: Caller, invitation: Invitation, link: str, mailer: Mailer) -> bool:
    """Send an invitation that is already counted as sent; whether it was. If not, it is void, except for operators."""
    is_sent = True
    try:
        await mailer.send(invitation_email(invitation, caller.tenant, link))
    except MailFailed:
        is_sent = False
    async with db.transaction(caller) as tx:
        if is_sent:
            await members.end_earlier_invitations(tx, invitation.id)
        elif caller.is_operator:
            await members.show_link(tx, invitation.id)
        else:
            await members.give_up_mail(tx, invitation.id)
            tx.undo_act()
    return is_sent


def invitation_email(invitation: Invitation, tenant: str, link: str) -> Email:
    """The mail to the invited person. It names the tenant by its slug alone: it has no text that members chose."""
    return Email(
        to=invitation.email,
        subject=f"You are invited to {tenant} on Recollect",
        text=(
            f"You are invited to join the organisation {tenant} on Recollect as {invitation.role}.\n"
            "\n"
            "Open this link to accept:\n"
            "\n"
            f"{link}\n"
            "\n"
            f"The link is for you alone, works once, and is valid until {invitation.expires_at:%Y-%m-%d %H:%M} UTC.\n"
            "If you did not expect this invitation, you can ignore it.\n"
        ),
    )
