"""What people are told by mail of their own account, so that whose it is learns what somebody else did there."""

from datetime import UTC, datetime

from recollect.platform.mail import Letter, Mailer, MailFailed


async def tell_of_password(mailer: Mailer, email: str, *, address: str | None) -> None:
    """Tell a person that their account has another password. One that cannot be sent is in the log."""
    await _send(mailer, email, "Your password was changed", "The password of your account was changed", address)


async def tell_of_passkey(mailer: Mailer, email: str, *, address: str | None) -> None:
    """Tell a person that their account has another passkey. One that cannot be sent is in the log."""
    await _send(mailer, email, "A passkey was added", "A passkey was added to your account", address)


async def _send(mailer: Mailer, email: str, subject: str, act: str, address: str | None) -> None:
    try:
        await mailer.send(notice(email, subject, act, address=address, at=datetime.now(UTC)))
    except MailFailed:
        return  # The log tells.


def notice(email: str, subject: str, act: str, *, address: str | None, at: datetime) -> Letter:
    """What the person reads. Nothing in it was chosen by whoever did it, and no link is to be followed."""
    return Letter(
        to=email,
        subject=f"{subject} on Recollect",
        text=(
            f"{act} on Recollect on {at:%Y-%m-%d} at {at:%H:%M} UTC, from {address or 'an unknown address'}.\n\n"
            "If that was you, there is nothing to do.\n"
            "If not, somebody else is in your account: take another password, end all sessions, and remove passkeys\n"
            "that are not yours, on your account page. Then tell whoever runs your organisation's memory.\n"
        ),
    )
