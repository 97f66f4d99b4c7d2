"""Mail to people about changes of their accounts, sent in the background once the change is done."""

from collections.abc import Awaitable, Callable

from recollect.outbound.mail import Mailer
from recollect_http.requests import AnyRequest


def send_notice(request: AnyRequest, send: Callable[[Mailer], Awaitable[None]]) -> None:
    """Send a notice as a background task, where the deployment sends mail; the answer does not wait for it."""
    mailer: Mailer | None = request.app.state.mailer
    if mailer is not None:
        request.app.state.background_tasks.begin("notice", lambda: send(mailer))
