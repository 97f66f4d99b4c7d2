"""No search finds, or counts, what is another tenant's."""

import pytest

from recollect.retrieval.search import service as search
from recollect.retrieval.search.model import BooleanQuery, DateQuery, FuzzyQuery, RankedQuery
from tests.integration.test_classic_searches import reading
from tests.memories import names
from tests.tenancy.conftest import Neighbour


async def test_each_tenant_finds_its_own(neighbours: tuple[Neighbour, Neighbour]) -> None:
    mine, theirs = neighbours
    await mine.create("Grace")
    for agent, others in ((mine, ["Grace"]), (theirs, [])):
        assert names(await reading(agent, search.search_boolean, BooleanQuery("NOT type:cat"))) == ["Ada", *others]
        assert names(await reading(agent, search.search_dates, DateQuery())) == ["Ada", *others]
        assert names(await reading(agent, search.search_fuzzy, FuzzyQuery("persn"))) == ["Ada"]
        [hit] = (await reading(agent, search.search_ranked, RankedQuery("programs"))).hits
        assert hit.entity.name == "Ada"
        assert (hit.score > 0) is bool(others)  # ln(N / n) of what each has


async def test_the_past_of_another_tenant_is_not_read(neighbours: tuple[Neighbour, Neighbour]) -> None:
    mine, theirs = neighbours
    revision = str((await theirs.head()).revision)
    await mine.delete("Ada")
    assert names(await reading(theirs, search.search_boolean, BooleanQuery("Ada"), revision)) == ["Ada"]
    assert names(await reading(mine, search.search_boolean, BooleanQuery("Ada"))) == []


FUNCTIONS = {
    "entities_of": "SELECT id FROM entities_of($1, $2, $4, clock_timestamp()) WHERE id = $3",
    "statements_of": "SELECT id FROM statements_of($1, $2, $4, clock_timestamp()) WHERE node_id = $3",
    "entity_of": "SELECT name FROM entity_of($1, $2, $3, $4, clock_timestamp())",
    "statements_about": "SELECT content FROM statements_about($1, $2, $3, $4, clock_timestamp())",
}


@pytest.mark.parametrize("revision", [None, 3])
@pytest.mark.parametrize("function", FUNCTIONS)
async def test_the_functions_that_searches_read_show_no_other_tenant(
    neighbours: tuple[Neighbour, Neighbour], function: str, revision: int | None
) -> None:
    """They run as their caller: asked for another tenant's things by their ids, they have no row, now or then."""
    mine, theirs = neighbours
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        graph, node = await tx.fetchrow("SELECT graph_id, id FROM nodes WHERE name = 'Ada'") or (None, None)
        asked = (mine.caller.tenant_id, graph, node, revision)
        assert await tx.fetch(FUNCTIONS[function], *asked)
    async with theirs.db.transaction(theirs.caller, read_only=True) as tx:
        assert await tx.fetch(FUNCTIONS[function], *asked) == []
    async with mine.db.system() as session:
        assert await session.fetch(FUNCTIONS[function], *asked) == []
