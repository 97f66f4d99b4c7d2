"""What keeps a gateway from starting, as one error: the web server would log it as a traceback of a hundred lines."""

from typing import Any

from recollect.errors import RecollectError


class Starting:
    """An application whose start may be refused by one of its parts: by a setting, or a file that is not there.

    `refusal` is that error then. Errors that nobody foresaw are left to the web server, which logs them in full.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self.refusal: RecollectError | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request, or the whole life of the application."""
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        start_message: dict[str, Any] | None = None

        async def send_unless_failed(message: dict[str, Any]) -> None:
            nonlocal start_message
            if message["type"] == "lifespan.startup.failed":
                start_message = message
            else:
                await send(message)

        try:
            await self._app(scope, receive, send_unless_failed)
        except Exception as error:
            self.refusal = _refusal(error)
            if self.refusal is None or start_message is None:
                raise
            start_message = {"type": start_message["type"], "message": ""}
        finally:
            if start_message is not None:
                await send(start_message)


def _refusal(error: BaseException) -> RecollectError | None:
    """The RecollectError that is in it; None for any other."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error if isinstance(error, RecollectError) else None
