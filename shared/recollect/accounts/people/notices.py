"""Mails to people about changes to their accounts, so that they learn of changes that others made."""

from collections.abc import Sequence
from datetime import UTC, datetime

from recollect.outbound.mail import Email, Mailer, MailFailed

IF_NOT_YOU = (
    "If not, somebody else has access to your account: choose a new password, end all sessions, and remove passkeys\n"
    "that are not yours, on your account page. Then tell whoever runs your organisation's memory.\n"
)
OF_ORGANISATION = (
    "If you do not know of this, ask the owners of the organisation, and tell whoever operates the service.\n"
)
AFTER_DELETION = (
    "If not, somebody else had access to your account: tell whoever runs your organisation's memory. The account\n"
    "cannot be restored. What organisations remember stays with them, and a new invitation to this address makes a\n"
    "new account.\n"
)


async def notify_of_password(mailer: Mailer, email: str, *, address: str | None) -> None:
    """Mail a person that their password was changed. A mail that cannot be sent is logged."""
    await _send(mailer, email, "Your password was changed", "The password of your account was changed", _from(address))


async def notify_of_reset(mailer: Mailer, email: str, *, address: str | None) -> None:
    """Mail a person that their password was reset, and what that ended. A mail that cannot be sent is logged."""
    act = (
        "The password of your account was reset by a link, which ended all your sessions, removed your passkeys and\n"
        "disconnected identity providers,"
    )
    await _send(mailer, email, "Your password was changed", act, _from(address))


async def notify_of_passkey(mailer: Mailer, email: str, *, address: str | None) -> None:
    """Mail a person that a passkey was added to their account. A mail that cannot be sent is logged."""
    await _send(mailer, email, "A passkey was added", "A passkey was added to your account", _from(address))


async def notify_of_deletion(mailer: Mailer, email: str, *, address: str | None) -> None:
    """Mail a person that their account was deleted; `address` None: by an operator."""
    origin = f"from {address}" if address else "by an operator of Recollect"
    await _send(mailer, email, "Your account was deleted", "Your account was deleted", origin, warning=AFTER_DELETION)


async def notify_of_requested_deletion(
    mailer: Mailer, emails: Sequence[str], tenant: str, address: str | None, *, due: str | None
) -> None:
    """Mail owners and admins that the deletion of their organisation was requested or (`due` None) taken back."""
    if due is None:
        subject = f"The organisation {tenant} is kept"
        act, warning = f"An owner took back that the organisation {tenant} is to be deleted", OF_ORGANISATION
    else:
        subject = f"The organisation {tenant} is to be deleted"
        act = f"An owner asked for the deletion of the organisation {tenant}, which begins on {due},"
        warning = f"Until then any owner takes that back: in the console, under Settings, Delete.\n{OF_ORGANISATION}"
    for email in emails:
        await _send(mailer, email, subject, act, _from(address), warning=warning)


async def _send(mailer: Mailer, email: str, subject: str, act: str, origin: str, *, warning: str = IF_NOT_YOU) -> None:
    try:
        await mailer.send(notice(email, subject, act, origin=origin, at=datetime.now(UTC), warning=warning))
    except MailFailed:
        return  # The mailer has logged it.


def notice(email: str, subject: str, act: str, *, origin: str, at: datetime, warning: str = IF_NOT_YOU) -> Email:
    """The mail to the person. It has no text that the author of the change chose, and no link."""
    return Email(
        to=email,
        subject=f"{subject} on Recollect",
        text=(
            f"{act} on Recollect on {at:%Y-%m-%d} at {at:%H:%M} UTC, {origin}.\n\n"
            f"If that was you, there is nothing to do.\n{warning}"
        ),
    )


def _from(address: str | None) -> str:
    return f"from {address or 'an unknown address'}"
