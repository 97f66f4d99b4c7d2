"""What finds passages by their days finds none of another tenant."""

from datetime import UTC, datetime

import pytest

from recollect.memory.model import NewMemory
from recollect.postgres.sql import Query
from tests.tenancy.conftest import Neighbour

AT = datetime(2026, 11, 25, 12, tzinfo=UTC)
FOUND = {
    "find_said_within": Query.compile(
        "SELECT id FROM find_said_within(:owner_id, :graph_id, '{2026-11-25T00:00Z}', '{2026-11-26T00:00Z}', "
        "'{2026-11-25}', '{2026-11-25}', 100, false)"
    ),
    "find_naming_days": Query.compile(
        "SELECT id FROM find_naming_days(:owner_id, :graph_id, ARRAY[:day::integer], 100, false)"
    ),
}


@pytest.mark.proves("security: searches-of-one-tenant")
@pytest.mark.parametrize("function", FOUND)
async def test_the_functions_of_days_show_no_rows_of_another_tenant(
    neighbours: tuple[Neighbour, Neighbour], function: str
) -> None:
    mine, theirs = neighbours
    await mine.remember(NewMemory("Yesterday we moved.", at=AT))
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        graph_id = await tx.fetchval(Query.compile("SELECT id FROM graphs LIMIT 1"))
    query, day = FOUND[function], AT.date().toordinal() - 1
    known = {"owner_id": mine.caller.tenant_id, "graph_id": graph_id, "day": day}
    asked = {name: value for name, value in known.items() if name in query.parameters}
    for neighbour, count in ((mine, 1), (theirs, 0)):
        async with neighbour.db.transaction(neighbour.caller, read_only=True) as tx:
            assert len(await tx.fetch(query, **asked)) == count
    async with mine.db.system() as session:
        assert await session.fetch(query, **asked) == []
