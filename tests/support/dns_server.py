"""A name server on loopback that answers with TXT records, or does not answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rrset


@dataclass
class NameServer(asyncio.DatagramProtocol):
    """Answers with the texts of a name in `records`, but not for those in `silent`. `asked` lists the requests."""

    records: dict[str, list[str]] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # It is one, but does not inherit from that class.
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, address: tuple[str | object, int]) -> None:
        query = dns.message.from_wire(data)
        (question,) = query.question
        name = question.name.to_text(omit_final_dot=True)
        self.asked.append(name)
        if name in self.silent:
            return
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.RA
        if name not in self.records:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        elif self.records[name]:
            texts = [f'"{text}"' for text in self.records[name]]
            reply.answer.append(dns.rrset.from_text(question.name, 60, "IN", "TXT", *texts))
        self._transport.sendto(reply.to_wire(), address)


@asynccontextmanager
async def name_server() -> AsyncIterator[NameServer]:
    """A name server, for as long as the context lasts."""
    transport, server = await asyncio.get_running_loop().create_datagram_endpoint(
        NameServer, local_addr=("127.0.0.1", 0)
    )
    try:
        yield server
    finally:
        transport.close()
