"""Releases the slot of a call while the call waits for its client, so that another call can use it."""

from typing import Any

from litestar.types import Message, Receive, Send

from recollect.fairness.slots import Slot


class PacedExchange:
    """Receives from a client and sends to it, without the call's slot.

    So other calls are at work between the parts of a body or of an answer.
    """

    def __init__(self, slot: Slot, receive: Receive, send: Send) -> None:
        self._slot, self._receive, self._send = slot, receive, send
        self._is_read = False

    async def receive(self) -> Any:
        """The next message of the request. After its body a call listens while it works, and keeps its slot."""
        if self._is_read:
            return await self._receive()
        self._slot.give_back()
        message = await self._receive()
        self._is_read = message["type"] != "http.request" or not message.get("more_body")
        await self._slot.take(first=self._is_read)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        if message["type"] != "http.response.body":
            await self._send(message)
        elif not message.get("more_body"):
            self._slot.end()
            await self._send(message)
        else:
            self._slot.give_back()
            await self._send(message)
            await self._slot.take()
            await self._slot.yield_to_others()
