"""PgBouncer in transaction mode in front of the run's PostgreSQL."""

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlsplit

from recollect_local.account import server_account
from recollect_local.address import claimed_port
from recollect_local.process import start_process, stop_process

START_SECONDS = 20.0

CONFIGURATION = """
[databases]
recollect = host={host} port={port} dbname=recollect
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = {connections}
max_client_conn = 200
"""


@contextmanager
def pgbouncer(url: str, *, connections: int) -> Iterator[str]:
    """Run PgBouncer with so many connections to the database at `url`; yields its address for recollect_app."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    assert program, "this needs PgBouncer: install it (the package pgbouncer of Debian)"
    place, account = parse_qs(urlsplit(url).query), server_account()
    with TemporaryDirectory(prefix="recollect-") as name, claimed_port("127.0.0.1", 0) as port:
        folder = Path(name)
        if account:
            os.chown(folder, account.pw_uid, account.pw_gid)
        users, configuration, log = folder / "users.txt", folder / "pgbouncer.ini", folder / "pgbouncer.log"
        users.write_text('"recollect_app" ""\n')
        configuration.write_text(
            CONFIGURATION.format(
                host=place["host"][0], port=place["port"][0], listen=port, users=users, connections=connections
            )
        )
        process = start_process([program, str(configuration)], log=log, account=account)
        try:
            _wait_until_it_listens(port, log)
            yield f"postgresql://recollect_app@127.0.0.1:{port}/recollect"
        finally:
            stop_process(process, grace_seconds=START_SECONDS)


def _wait_until_it_listens(port: int, log: Path) -> None:
    give_up = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < give_up, log.read_text()
            time.sleep(0.05)
