"""Labels, other forms of words, and folded names are found and analysed of one tenant only."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.view import GraphView
from recollect.graph.nodes import label_rebuild
from recollect.graph.nodes import store as nodes
from recollect.postgres.transactions import Transaction
from recollect.retrieval.search import service as search
from recollect.retrieval.search import store
from recollect.retrieval.search.model import FuzzyQuery, LabelQuery
from recollect.words.analysis import LABELS_VERSION, AskedWord
from tests.tenancy.conftest import Neighbour

ASKED = LabelQuery((AskedWord(("xylophon",)),), 1.0)
FUZZY = FuzzyQuery("Xylophon", 0.5)


@pytest.fixture
async def theirs(neighbours: tuple[Neighbour, Neighbour], owner: asyncpg.Connection) -> UUID:
    """The graph of the other tenant, which has what nobody else has."""
    other = neighbours[1]
    await other.create(NewEntity("Xylophön", "thing", ("xylophones are loud",), ("xylophone",)))
    graph_id: UUID = await owner.fetchval("SELECT id FROM graphs WHERE tenant_id = $1", other.caller.tenant_id)
    return graph_id


async def found(tx: Transaction, view: GraphView) -> list[Any]:
    """What each search finds that reads labels, words or folded names."""
    return [
        await search.match_labels(view, ASKED),
        await store.sample_words(view, {"xylophon": ASKED.words[0]}),
        await store.fuzzy_words(view, FUZZY, "'xylophon'", examined=10),
        await store.complete_names(view, "xylophon", examined=10, limit=10),
    ]


@pytest.mark.proves("security: searches-of-one-tenant")
async def test_labels_and_words_of_another_tenant_are_not_found(
    neighbours: tuple[Neighbour, Neighbour], theirs: UUID
) -> None:
    mine, other = neighbours
    async with other.db.transaction(other.caller, read_only=True) as tx:
        assert all(await found(tx, await graphs.view(tx, None)))
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        own = await graphs.view(tx, None)
        assert await found(tx, own) == [[], [], [], []]
        forged = GraphView(tx, replace(own.graph, id=theirs))
        assert await found(tx, forged) == [[], [], [], []]


async def test_labels_of_another_tenant_are_not_analysed(
    neighbours: tuple[Neighbour, Neighbour], theirs: UUID, owner: asyncpg.Connection
) -> None:
    del theirs
    mine, other = neighbours
    await mine.create(NewEntity("Own", "thing", (), ("tag",)))
    both = [mine.caller.tenant_id, other.caller.tenant_id]
    await owner.execute("UPDATE nodes SET labels_version = 0 WHERE tenant_id = ANY ($1)", both)
    ids = await owner.fetch("SELECT id FROM nodes WHERE tenant_id = $1", other.caller.tenant_id)
    async with mine.db.transaction(mine.caller) as tx:
        assert await label_rebuild.rebuild_page(tx, limit=100) > 0
        assert await nodes.replace_labels(tx, [row["id"] for row in ids], ["'x':1"] * len(ids)) == 0
    tagged = "SELECT DISTINCT labels_version FROM nodes WHERE tenant_id = $1 AND tags <> '{}'"
    for neighbour, version in ((mine, LABELS_VERSION), (other, 0)):
        assert [row["labels_version"] for row in await owner.fetch(tagged, neighbour.caller.tenant_id)] == [version]
