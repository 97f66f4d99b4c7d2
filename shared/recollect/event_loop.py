"""The event loop of gateways and workers."""

import asyncio
from typing import Any

import uvloop


class EventLoop(uvloop.Loop):
    """uvloop's, which closes a datagram socket that is being opened when its caller is cancelled.

    uvloop opens the socket at once and returns it in the loop's next turn. A caller that is cancelled in between does
    not get it, and uvloop keeps it open, and reads from it, for as long as the process lives.
    """

    async def create_datagram_endpoint(self, *args: Any, **kwargs: Any) -> Any:
        """Open a datagram socket. Arguments and result are those of asyncio."""
        opening = self.create_task(super().create_datagram_endpoint(*args, **kwargs))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close)
            raise


def _close(opening: asyncio.Task[tuple[Any, Any]]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        transport, _ = opening.result()
        transport.close()
