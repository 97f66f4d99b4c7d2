"""What is counted and analysed anew of words is of one tenant only."""

import asyncpg
import pytest

from recollect.fairness.computing import finish
from recollect.graph.passage_words import service as passage_words
from recollect.graph.passage_words import store, word_rebuild
from recollect.graph.passage_words.model import Reanalysis
from recollect.words.analysis import WORDS_VERSION, asked_words
from tests.support.memories import count_words
from tests.tenancy.conftest import Neighbour

VERSIONS = "SELECT words_version FROM passages WHERE tenant_id = $1"


@pytest.mark.proves("security: searches-of-one-tenant")
async def test_words_of_another_tenant_are_not_counted(
    neighbours: tuple[Neighbour, Neighbour], owner: asyncpg.Connection
) -> None:
    mine, other = neighbours
    await other.remember("xylophone lessons", "xylophone concert")
    async with other.db.transaction(other.caller) as tx:
        await count_words(tx)
    graph_id = await owner.fetchval("SELECT id FROM graphs WHERE tenant_id = $1", other.caller.tenant_id)
    words = finish(asked_words("xylophone lessons"))
    async with other.db.transaction(other.caller, read_only=True) as tx:
        assert (await passage_words.count_words(tx, graph_id, words, looked_at=100))["lesson"] == 1
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        assert await passage_words.count_words(tx, graph_id, words, looked_at=100) == {}
        forged = "SELECT count_words($1, $2, $3, 100)"
        lexemes = ["xylophon", "lesson"]
        assert await tx._connection.fetchval(forged, other.caller.tenant_id, graph_id, lexemes) == {}


async def test_a_worker_analyses_only_passages_of_its_tenant(
    neighbours: tuple[Neighbour, Neighbour], owner: asyncpg.Connection
) -> None:
    mine, other = neighbours
    both = [mine.caller.tenant_id, other.caller.tenant_id]
    await owner.execute("UPDATE passages SET words_version = 1 WHERE tenant_id = ANY ($1)", both)
    async with mine.db.transaction(mine.caller) as tx:
        assert await word_rebuild.rebuild_page(tx) > 0
        theirs = await owner.fetch("SELECT id, graph_id FROM passages WHERE tenant_id = $1", other.caller.tenant_id)
        for row in theirs:
            assert (
                await store.replace_words(tx, row["graph_id"], [Reanalysis(row["id"], row["graph_id"], "'x':1", ())])
                == 0
            )
    for neighbour, version in ((mine, WORDS_VERSION), (other, 1)):
        rows = await owner.fetch(VERSIONS, neighbour.caller.tenant_id)
        assert {row["words_version"] for row in rows} == {version}
