"""No form of a name finds, or is likened to, an entity of another tenant."""

import unicodedata

import pytest

from recollect.graph.entities import service as entities
from recollect.graph.entities.model import NewEntity
from recollect.graph.graphs import service as graphs
from recollect.graph.nodes import naming
from recollect.postgres.sql import Query
from tests.tenancy.conftest import Neighbour

FORM = "Ada "
LOOKUPS = {
    "nodes_named": Query.compile("SELECT id FROM nodes_named(:owner_id, :graph_id, 'Ada ')"),
    "nodes_named by key": Query.compile("SELECT id FROM nodes_named(:owner_id, :graph_id, 'Zoë')"),
    "named_at": Query.compile("SELECT node_id FROM named_at(:owner_id, :graph_id, 'Ada ', 9, now())"),
    "named_at by key": Query.compile("SELECT node_id FROM named_at(:owner_id, :graph_id, 'Zoë', 9, now())"),
    "forms_of": Query.compile("SELECT id FROM forms_of(:owner_id, :graph_id, 'Zoë')"),
    "forms_at": Query.compile("SELECT node_id FROM forms_at(:owner_id, :graph_id, 'Zoë', 9)"),
    "entities_named": Query.compile(
        "SELECT unnest(entities_named(:owner_id, :graph_id, ARRAY['Zoë'], ARRAY['zoë'], 3, 9))"
    ),
}


@pytest.mark.proves("security: searches-of-one-tenant")
async def test_another_form_of_a_name_finds_only_the_tenants_own_entity(
    neighbours: tuple[Neighbour, Neighbour], subtests: pytest.Subtests
) -> None:
    mine, theirs = neighbours
    await mine.create(unicodedata.normalize("NFD", "Zoë"))
    async with mine.db.transaction(mine.caller, read_only=True) as tx:
        found = await tx.fetchrow(Query.compile("SELECT graph_id FROM nodes WHERE name = 'Ada'"))
        asked = {**(found or {}), "owner_id": mine.caller.tenant_id}
    for name, query in LOOKUPS.items():
        with subtests.test(name):
            async with mine.db.transaction(mine.caller, read_only=True) as tx:
                assert await tx.fetch(query, **asked)
            async with theirs.db.transaction(theirs.caller, read_only=True) as tx:
                assert await tx.fetch(query, **asked) == []
            async with mine.db.system() as session:
                assert await session.fetch(query, **asked) == []


async def test_a_write_under_another_form_reaches_the_own_entity_alone(
    neighbours: tuple[Neighbour, Neighbour],
) -> None:
    mine, theirs = neighbours
    assert await mine.observe(FORM, "sails") == ["sails"]
    assert "sails" not in str(await theirs.read())
    await mine.delete(f" {FORM}")
    assert [entity.name for entity in (await theirs.read()).entities] == ["Ada"]


async def test_similar_names_of_another_tenant_are_not_told(neighbours: tuple[Neighbour, Neighbour]) -> None:
    mine, theirs = neighbours
    await mine.create("Project Falcon", "ＡＤＡ")
    for agent, similar in ((mine, True), (theirs, False)):
        async with agent.writing() as (tx, revision):
            made = await entities.create_entities(tx, revision, [NewEntity("PROJECT FALCON")])
            new = [(node_id, entity.name) for node_id, entity in made]
            told = await entities.find_similar_names(tx, revision.graph, new)
            assert [other.name for others in told.values() for other in others] == ["Project Falcon"] * similar
    async with theirs.db.transaction(theirs.caller, read_only=True) as tx:
        view = await graphs.view(tx, None)
        assert await naming.find_named(view, ["Project Falcon", "ＡＤＡ "]) == {}
