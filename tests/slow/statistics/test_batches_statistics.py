"""What a batch writes of one entity, hub, thread or tag takes rows in proportion to it, whatever PostgreSQL knows.

In a database that is young, or that knows this tenant well, a look-up of each of n items by an index of their common
entity alone would read the other n each time.
"""

import json
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import indexing
from recollect.graph.passages.store import MAX_RENEWED
from recollect.memory.model import NewMemory
from recollect.transfer import service as transfer
from recollect.transfer.batches import read_batches
from recollect.transfer.model import Strategy
from tests.support.column_statistics import Work
from tests.support.memories import Agent, Triple

COUNT = 1_000
ROWS_OF_ONE = 40
"""The most rows that a statement may look at for each item: those of its nodes and indexes, and those of checks."""

SEARCHES = {"similarity.find_near_duplicates"}
"""It compares each new memory with a bounded number of others."""

TEXTS = [f"observation {n} of one entity" for n in range(COUNT)]
TRIPLES: list[Triple] = [("hub", f"leaf {n}", "next") for n in range(COUNT)]

ENTITY = json.dumps({"type": "entity", "name": "one", "entityType": "thing", "observations": TEXTS})
HUB = "\n".join(json.dumps({"type": "relation", "from": f, "to": t, "relationType": r}) for f, t, r in TRIPLES)
INTO_HUB = "\n".join(json.dumps({"type": "relation", "from": t, "to": f, "relationType": r}) for f, t, r in TRIPLES)
TAGGED = "\n".join(
    json.dumps({"type": "entity", "name": f"tagged {n}", "entityType": "thing", "observations": [], "tags": ["one"]})
    for n in range(COUNT)
)


def imports(data: str) -> Callable[[Agent], Awaitable[None]]:
    """The import of a file, batch by batch, as a job writes it."""

    async def import_file(agent: Agent) -> None:
        for batch in read_batches("jsonl", [data.encode()]):
            async with agent.db.transaction(agent.caller) as tx:
                await transfer.import_batch(tx, "default", batch.items, Strategy.MERGE)

    return import_file


async def remember(agent: Agent) -> None:
    """Memories of one thread, with one tag, about one entity."""
    await agent.remember(
        *(NewMemory(f"remark {n}", about=("one",), thread="talk", tags=("one",)) for n in range(COUNT // 2))
    )


async def take_back(agent: Agent) -> None:
    """Delete all observations of the entity, and all relations of the hub."""
    await agent.unobserve(*(("one", text) for text in TEXTS))
    await agent.unrelate(*TRIPLES)


WRITES: list[tuple[str, Callable[[Agent], Awaitable[None]]]] = [
    ("one entity", imports(ENTITY)),
    ("one entity, known", imports(ENTITY)),
    ("one hub", imports(HUB)),
    ("one hub, known", imports(HUB)),
    ("one target", imports(INTO_HUB)),
    ("one target, known", imports(INTO_HUB)),
    ("one tag", imports(TAGGED)),
    ("one tag, known", imports(TAGGED)),
    ("one thread", remember),
    ("one thread, known", remember),
    ("taken back", take_back),
]


@pytest.mark.parametrize("work", ["none", "among", "own"], indirect=True)
async def test_a_batch_of_one_thing_looks_at_few_rows_for_each_item(work: Work, subtests: pytest.Subtests) -> None:
    for name, write in WRITES:
        work.watch.clear()
        await write(work.agent)
        read = {name: rows for name, rows in work.watch.rows.items() if name not in SEARCHES}
        with subtests.test(name):
            assert "graphs.lock_graph" in read
            assert {query: rows for query, rows in read.items() if rows > ROWS_OF_ONE * COUNT} == {}
    assert (await work.agent.read()).entities


@pytest.mark.parametrize("work", ["none", "own"], indirect=True)
async def test_a_reindex_rebuilds_a_few_passages_of_an_entity_at_a_time(work: Work) -> None:
    """The arguments of a statement are encoded on the worker's event loop in one go, for which all else waits."""
    await imports(ENTITY)(work.agent)
    work.watch.clear()
    async with work.agent.db.transaction(work.agent.caller) as tx:
        graph = (await graphs.view(tx, None)).graph
        revision = await graphs.lock_graph_by_id(tx, graph.id)
        page, _ = await indexing.reindex_page(tx, revision, after=UUID(int=0), limit=10_000)
    assert page
    writes = {name: rows for name, rows in work.watch.rows.items() if name.startswith("passages.")}
    assert writes.pop("passages.list_indexed_memories") >= COUNT
    assert max(writes.values()) <= ROWS_OF_ONE * MAX_RENEWED
