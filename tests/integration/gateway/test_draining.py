"""A stopping server answers requests that have begun to arrive."""

import socket
import threading
import time

from recollect.settings import Settings
from tests.support.gateway import serving
from tests.support.timeouts import MAX_WAIT_SECONDS


def test_a_request_whose_headers_are_arriving_is_answered(settings: Settings) -> None:
    """A busy machine may take longer to stop serving than a client may usually take to send its headers."""
    settings = settings.model_copy(update={"header_seconds": MAX_WAIT_SECONDS, "finish_seconds": MAX_WAIT_SECONDS})
    with socket.socket() as early, socket.socket() as late:
        late.settimeout(MAX_WAIT_SECONDS)
        with serving(settings) as gateway:
            address = ("127.0.0.1", int(gateway.url.rpartition(":")[2]))
            late.connect(address)
            late.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            early.connect(address)  # It is served after the other one, whose bytes have been read by then.
            early.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert early.recv(65536).startswith(b"HTTP/1.1 200")
            ending = threading.Thread(target=_end_once_refused, args=(address, late))
            ending.start()
        ending.join()
        answer = late.recv(65536)
    assert answer.startswith(b"HTTP/1.1 200"), answer
    assert b"connection: close" in answer.lower()


def _end_once_refused(address: tuple[str, int], late: socket.socket) -> None:
    """Send the rest once the server accepts no more connections."""
    while True:
        try:
            socket.create_connection(address).close()
        except ConnectionRefusedError:
            break
        time.sleep(0.01)  # The server is a thread of this process, which a loop without a pause would hold up.
    late.sendall(b"\r\n")
