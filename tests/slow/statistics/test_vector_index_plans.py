"""A large graph beside many small ones is searched by its vector and word indexes, as PostgreSQL's planner prefers.

The tests assert how many rows are looked at, and never how long that takes.
"""

import pytest

from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.postgres.operator_sessions import Operator
from recollect.retrieval.similarity import service as similarity
from recollect.retrieval.similarity.model import MAX_COMPARED
from recollect.retrieval.vector_indexes import service as vector_indexes
from tests.support.column_statistics import Work

SIZE = 12_000
"""The number of passages: a few more than the number of memories from which a graph gets an index by default."""

COPY_PASSAGES = f"""
CREATE TEMPORARY TABLE copies AS
    SELECT p.*, gen_random_uuid() AS copy FROM passages p CROSS JOIN generate_series(1, {SIZE} / 50)
    WHERE p.tenant_id = (SELECT id FROM tenants WHERE slug = 'big');
SET session_replication_role = replica;
INSERT INTO passages (tenant_id, graph_id, id, node_id, memory_id, source, place, said_at, text, tsv, embedding_model,
    added_revision, sequence, settled)
    SELECT tenant_id, graph_id, copy, node_id, memory_id, source, place, said_at, '', '', embedding_model,
        added_revision, sequence, settled
    FROM copies;
INSERT INTO searched_vectors (tenant_id, graph_id, passage_id, model, embedding, live)
    SELECT c.tenant_id, c.graph_id, c.copy, v.model, ARRAY(SELECT random() - .5 FROM generate_series(1, 256)
        WHERE c.copy IS NOT NULL)::vector::halfvec, true
    FROM copies c JOIN searched_vectors v ON v.tenant_id = c.tenant_id AND v.passage_id = c.id;
INSERT INTO passage_vectors (tenant_id, passage_id, model, embedding)
    SELECT tenant_id, passage_id, model, embedding FROM searched_vectors ON CONFLICT DO NOTHING;
RESET session_replication_role;
"""

WITHOUT_ENGLISH = """
UPDATE searched_vectors SET embedding = (ARRAY[0] || (embedding::vector::real[])[2:])::vector::halfvec
    WHERE tenant_id = (SELECT id FROM tenants WHERE slug = 'big') AND hashtext(passage_id::text) % 2 = 0
"""
"""Makes of about every second vector one of the other kind, which has an index of its own."""

FACT = "SELECT n.id FROM nodes n JOIN tenants t ON t.id = n.tenant_id AND t.slug = 'big' WHERE n.name IS NULL LIMIT 1"


@pytest.fixture
async def large(work: Work) -> Work:
    """Work in a graph with SIZE passages and a vector index. PostgreSQL's statistics of the vectors come from building
    the index."""
    await work.agent.create(*(NewEntity(f"place {n}", "place", (f"a harbour crane stands at {n}",)) for n in range(40)))
    await work.agent.remember(*(f"the crane {n} was repaired in March" for n in range(10)))
    await work.agent.embed()
    await work.owner.execute(COPY_PASSAGES)
    await work.owner.execute("ANALYZE passages")
    assert len(await vector_indexes.maintain_indexes(Operator(work.owner), from_memories=60, memory_mb=64)) == 1
    return work


@pytest.mark.parametrize("work", ["others"], indirect=True)
async def test_nearest_vectors_are_read_from_the_index(large: Work) -> None:
    agent, looked_at = large.agent, large.watch.rows
    fact = await large.owner.fetchval(FACT)
    large.watch.clear()
    assert (await agent.recall("when was the crane repaired")).hits
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert await similarity.find_similar(await graphs.view(tx, None), fact, min_score=-1.0, limit=5)
    async with agent.writing() as (tx, revision):
        assert await similarity.find_similar_entities(tx, revision.graph, {fact: -1.0}, limit=5)
    for statement in ("nearest_by_index", "find_by_words", "find_indexed_candidates"):
        assert looked_at[f"recall.{statement}"] < SIZE / 2, statement
    for statement in ("find_similar", "find_similar_entities"):  # Each compares up to 20 passages of the fact.
        assert looked_at[f"similarity.{statement}"] / MAX_COMPARED < SIZE / 2, statement


@pytest.mark.parametrize("work", ["others"], indirect=True)
async def test_nearest_vectors_of_both_kinds_are_read_from_their_indexes(large: Work) -> None:
    agent, looked_at = large.agent, large.watch.rows
    await large.owner.execute(WITHOUT_ENGLISH)
    await large.owner.execute("VACUUM searched_vectors")
    assert len(await vector_indexes.maintain_indexes(Operator(large.owner), from_memories=60, memory_mb=64)) == 1
    fact = await large.owner.fetchval(FACT)
    large.watch.clear()
    assert (await agent.recall("when was the crane repaired")).hits
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        assert await similarity.find_similar(await graphs.view(tx, None), fact, min_score=-1.0, limit=5)
    async with agent.writing() as (tx, revision):
        assert await similarity.find_similar_entities(tx, revision.graph, {fact: -1.0}, limit=5)
    assert looked_at["recall.nearest_by_index"] < SIZE / 4
    for statement in ("find_similar", "find_similar_entities"):
        assert looked_at[f"similarity.{statement}"] / MAX_COMPARED < SIZE / 4, statement
