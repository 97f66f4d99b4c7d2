"""Ports for servers that tests start as processes of their own."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from recollect_local.address import claimed_port


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port of 127.0.0.1 on which one server of the block may listen, and that no other socket gets meanwhile.

    A port that is only looked up may be given to another test before the server listens. Elsewhere than on Linux, two
    sockets are not bound to one address: there it is only free.
    """
    with ExitStack() as claim:
        port = claim.enter_context(claimed_port("127.0.0.1", 0))
        if sys.platform != "linux":
            claim.close()
        yield port
