"""Mail about one's account, sent beside the answer once what it tells of is done."""

from collections.abc import Awaitable, Callable
from typing import Any

from litestar import Request

from recollect.platform.mail import Mailer


def tell(request: Request[Any, Any, Any], send: Callable[[Mailer], Awaitable[None]]) -> None:
    """Send it as an errand, where the deployment sends mail; nobody waits for it."""
    mailer: Mailer | None = request.app.state.mailer
    if mailer is not None:
        request.app.state.errands.begin("notice", lambda: send(mailer))
