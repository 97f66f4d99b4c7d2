"""Logs and errors of operators name the server of an address, and nothing of its login or password."""

import pytest

from recollect.settings.database import server_of

SERVERS = {
    "postgresql://recollect_app:7hunder@db.internal/recollect": "db.internal:5432",
    "postgresql://recollect_app:7hunder@db.internal:6432/recollect": "db.internal:6432",
    "postgresql://recollect_app@[::1]/recollect": "[::1]:5432",
    "postgresql://recollect_app@[::1]:6432/recollect": "[::1]:6432",
    "postgresql://recollect_app:7hunder@one:5433,two/recollect": "one:5433,two:5432",
    "postgresql://recollect_app@/recollect?host=/run/postgresql&port=5433": "/run/postgresql",
    "postgresql://recollect_app@/recollect?host=db.internal&port=5433": "db.internal:5433",
    "postgresql:///recollect": "its default host:5432",
}

UNREADABLE = (
    "postgresql://recollect_app:7hun/der@127.0.0.1/recollect",
    "postgresql://recollect_app:7hun?der@127.0.0.1/recollect",
    "postgresql://recollect_app:7hun#der@127.0.0.1/recollect",
    "postgresql://[7hunder",
)


@pytest.mark.proves("security: database-addresses-in-logs")
def test_the_server_of_an_address(subtests: pytest.Subtests) -> None:
    for url, server in SERVERS.items():
        with subtests.test(url):
            assert server_of(url) == server


def test_nothing_is_told_of_an_address_that_cannot_be_read(subtests: pytest.Subtests) -> None:
    for url in UNREADABLE:
        with subtests.test(url):
            assert server_of(url) == "an address that cannot be read"
