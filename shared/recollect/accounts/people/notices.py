"""Mails to people about changes to their accounts, so that they learn of changes that others made."""

from datetime import UTC, datetime

from recollect.outbound.mail import Email, Mailer, MailFailed

IF_NOT_YOU = (
    "If not, somebody else has access to your account: choose a new password, end all sessions, and remove passkeys\n"
    "that are not yours, on your account page. Then tell whoever runs your organisation's memory.\n"
)
AFTER_DELETION = (
    "If not, somebody else had access to your account: tell whoever runs your organisation's memory. The account\n"
    "cannot be restored. What organisations remember stays with them, and a new invitation to this address makes a\n"
    "new account.\n"
)


async def notify_of_password(mailer: Mailer, email: str, *, address: str | None) -> None:
    """Tell a person that their password was changed. A mail that cannot be sent is logged."""
    await _send(mailer, email, "Your password was changed", "The password of your account was changed", _from(address))


async def notify_of_reset(mailer: Mailer, email: str, *, address: str | None) -> None:
    """Tell a person that their password was reset, and what that ended. A mail that cannot be sent is logged."""
    act = (
        "The password of your account was reset by a link, which ended all your sessions, removed your passkeys and\n"
        "disconnected identity providers,"
    )
    await _send(mailer, email, "Your password was changed", act, _from(address))


async def notify_of_passkey(mailer: Mailer, email: str, *, address: str | None) -> None:
    """Tell a person that a passkey was added to their account. A mail that cannot be sent is logged."""
    await _send(mailer, email, "A passkey was added", "A passkey was added to your account", _from(address))


async def notify_of_deletion(mailer: Mailer, email: str, *, address: str | None) -> None:
    """Tell a person that their account was deleted; `address` None: by an operator."""
    origin = f"from {address}" if address else "by an operator of Recollect"
    await _send(mailer, email, "Your account was deleted", "Your account was deleted", origin, warning=AFTER_DELETION)


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
