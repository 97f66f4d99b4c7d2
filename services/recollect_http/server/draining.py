"""How a gateway stops: it serves the requests that still come, and asks their clients to connect to another.

On SIGTERM readiness fails first, and each answer ends its connection (`Connection: close`), while requests are served
as before: a balancer takes a moment to notice. Then streams end, no connection is accepted any more, idle ones are
closed, and calls under way have their time to end.
"""

from collections.abc import Callable

from sse_starlette.sse import AppStatus


class Drain:
    """Whether this process is about to stop. `end_streams`: ends all open streams, once the process has any."""

    def __init__(self) -> None:
        self.begun = False
        self.end_streams: Callable[[], None] = lambda: None

    def begin(self) -> None:
        """Fail readiness, and have each answer end its connection."""
        self.begun = True


def keep_answers_whole() -> None:
    """Keep sse-starlette from cutting off answers of MCP when a signal comes.

    The SDK answers by sse-starlette, which watches the server's signals and ends at once every answer that it is
    sending, also those of calls that will be done in a moment. Streams are ended by `Drain`.
    """
    AppStatus.enable_automatic_graceful_drain = False
