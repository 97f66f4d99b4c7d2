"""A server that is too old is refused."""

import pytest

from recollect.postgres.migrate import OLDEST_POSTGRESQL, MigrationFailed, _require_postgresql


def test_a_server_that_is_too_old_is_refused() -> None:
    _require_postgresql(OLDEST_POSTGRESQL)
    with pytest.raises(MigrationFailed, match=r"PostgreSQL 15 or newer is needed; this server is 14\."):
        _require_postgresql(14)
