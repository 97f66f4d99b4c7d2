"""TXT records are looked up at name servers of IPv6, too."""

import asyncio
from typing import Any

import dns.message
import dns.rrset
import pytest

from recollect.outbound.txt_records import TextRecords
from recollect.settings import Settings


class _Server(asyncio.DatagramProtocol):
    """Answers each question with one record."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        question = dns.message.from_wire(data)
        answer = dns.message.make_response(question)
        answer.answer.append(dns.rrset.from_text(question.question[0].name, 1, "IN", "TXT", '"proof"'))
        self._transport.sendto(answer.to_wire(), addr)


@pytest.mark.parametrize("host", ["::1", "127.0.0.1"])
async def test_a_record_is_found(host: str) -> None:
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(_Server, local_addr=(host, 0))
    try:
        port = transport.get_extra_info("sockname")[1]
        server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        records = TextRecords(Settings(dns_servers=[server]))
        assert await records.look_up("example.com", on_behalf_of="us") == frozenset({"proof"})
    finally:
        transport.close()
