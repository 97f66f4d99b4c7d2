"""The slot of a call while it waits for its client: others have it meanwhile."""

from typing import Any

from litestar.types import Message, Receive, Send

from recollect.platform.slots import Slot


class PacedExchange:
    """What a client sends and is sent, while which its call gives its slot back.

    A body and an answer that come in parts are so in turns with other calls, part by part.
    """

    def __init__(self, slot: Slot, receive: Receive, send: Send) -> None:
        self._slot, self._receive, self._send = slot, receive, send
        self._is_read = False

    async def receive(self) -> Any:
        """The next message of the request. After its body comes what is only listened for, beside the work."""
        if self._is_read:
            return await self._receive()
        self._slot.give_back()
        message = await self._receive()
        self._is_read = message["type"] != "http.request" or not message.get("more_body")
        await self._slot.take(first=self._is_read)
        return message

    async def send(self, message: Message) -> None:
        """A part of the answer."""
        if message["type"] != "http.response.body":
            await self._send(message)
        elif not message.get("more_body"):
            self._slot.end()
            await self._send(message)
        else:
            self._slot.give_back()
            await self._send(message)
            await self._slot.take()
            await self._slot.give_way()
