"""Mail to people about changes of their accounts, sent in the background once the change is done."""

from collections.abc import Awaitable, Callable
from typing import Any

from litestar import Request

from recollect.outbound.mail import Mailer


def send_notice(request: Request[Any, Any, Any], send: Callable[[Mailer], Awaitable[None]]) -> None:
    """Send a notice as a background task, where the deployment sends mail; the answer does not wait for it."""
    mailer: Mailer | None = request.app.state.mailer
    if mailer is not None:
        request.app.state.background_tasks.begin("notice", lambda: send(mailer))
