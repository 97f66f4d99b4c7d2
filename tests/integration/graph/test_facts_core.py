"""Facts and entities by id, without a transport: links by name, changes, neighbourhoods, and similar facts."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from recollect.accounts.identity.model import operator_caller
from recollect.errors import Conflict, ErrorCode, InvalidInput, NotFound
from recollect.fairness.computing import finish
from recollect.graph.aliases import service as aliases
from recollect.graph.graphs import service as graphs
from recollect.graph.graphs.model import NewGraph
from recollect.graph.graphs.view import GraphView
from recollect.graph.lineages.model import Version
from recollect.graph.nodes.model import NewFact, NodeFields
from recollect.graph.relations.model import NewEdge, NewRelation, RelationFilter
from recollect.memory import exploring, reading, relating, revising, searching, writing
from recollect.memory.exploring import Neighbourhood
from recollect.memory.links import RequestedLink
from recollect.memory.revising import NodePatch
from recollect.postgres.database import Database
from recollect.retrieval.recall.model import RecallFilter
from recollect.retrieval.search.model import phrases
from tests.conftest import NewTenant
from tests.support.memories import Agent, at_work, embedded_questions


async def fact(agent: Agent, text: str, *links: RequestedLink, auto_link: bool = True, **fields: Any) -> Version:
    async with agent.writing() as (tx, revision):
        return (await writing.create_fact(tx, revision, NewFact(text, **fields), links, auto_link=auto_link)).node


async def entity(agent: Agent, name: str, *links: RequestedLink, **fields: Any) -> Version:
    async with agent.writing() as (tx, revision):
        return (await writing.create_entity(tx, revision, name, NodeFields(**fields), links)).node


async def change(agent: Agent, node_id: UUID, **wanted: Any) -> Version:
    async with agent.writing() as (tx, revision):
        return await revising.change(tx, revision, node_id, NodePatch(**wanted))


async def relations_around(agent: Agent, node_id: UUID, depth: int = 1) -> list[tuple[str, str, str]]:
    """The relations within `depth` of a node, as the names or contents of their ends."""
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found = await exploring.neighbourhood(await graphs.view(tx, agent.graph), node_id, depth=depth, max_nodes=100)
    said = {node.node_id: node.name or node.content or "" for node in found.nodes}
    return sorted((said[edge.from_node], edge.type, said[edge.to_node]) for edge in found.edges)


async def linked_entities(agent: Agent, text: str) -> list[str]:
    """The entities to which a new fact with that text is related."""
    return [
        name
        for _, type_, name in await relations_around(agent, (await fact(agent, text)).node_id)
        if type_.startswith("MENT")
    ]


async def find(agent: Agent, text: str, **only: Any) -> list[str]:
    (question,) = await embedded_questions(text)
    async with agent.db.transaction(agent.caller, read_only=True) as tx:
        found = await searching.find(
            await graphs.view(tx, agent.graph), question, RecallFilter(**only), limit=10, threshold=None
        )
    return [one.node.name or one.node.content or "" for one in found]


class TestLinksByName:
    @pytest.mark.proves("graph-contract: create-node-links")
    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("Alice repairs clocks", ["Alice"]),
            ("alice repairs clocks", ["Alice"]),
            ("ALICE's clocks, and those of Ünal.", ["Alice", "Ünal"]),
            ("Malice is no virtue", []),
            ("Alicent is somebody else", []),
            ("She moved to New York City.", ["New York City"]),
            ("New York is not enough, nor is City", []),
            ("It runs on C++ and on .NET, in IT", [".NET", "C++", "IT"]),
            ("it is written in small letters", []),
            ("(Acme Inc.) pays", ["Acme Inc."]),
            ("東京に住んでいる", ["東京"]),
            ("100%_\\ '; DROP TABLE nodes; --", []),
        ],
    )
    async def test_a_fact_is_related_to_the_entities_that_it_names(
        self, agent: Agent, text: str, named: list[str]
    ) -> None:
        await agent.create("Alice", "Ünal", "New York City", "C++", ".NET", "IT", "Acme Inc.", "東京")
        assert sorted(await linked_entities(agent, text)) == sorted(named)

    @pytest.mark.proves("graph-contract: common-attributes")
    async def test_a_fact_is_related_to_an_entity_by_its_former_name(self, agent: Agent) -> None:
        made = await entity(agent, "Robert")
        async with agent.writing() as (tx, revision):
            await aliases.keep_name(tx, revision, made.node_id)
            await revising.change(tx, revision, made.node_id, NodePatch(text="Bob Smith"))
        assert await linked_entities(agent, "robert keeps bees") == ["Bob Smith"]
        assert await find(agent, "What does Robert keep?", named=True) == ["Bob Smith"]

    async def test_a_fact_is_not_related_to_deleted_archived_or_placeholder_nodes(self, agent: Agent) -> None:
        gone, archived = await entity(agent, "Gone"), await entity(agent, "Archived")
        await agent.create("Bob")
        await agent.relate(("Bob", "Placeholder", "knows"))
        await change(agent, archived.node_id, status="archived")
        async with agent.writing() as (tx, revision):
            await revising.delete(tx, revision, gone.node_id)
        assert await linked_entities(agent, "Gone, Archived and Placeholder met Bob") == ["Bob"]

    async def test_no_link_is_made_without_auto_link(self, agent: Agent) -> None:
        await agent.create("Alice")
        made = await fact(agent, "Alice repairs clocks", auto_link=False)
        assert await relations_around(agent, made.node_id) == []

    async def test_entities_of_another_graph_are_not_linked(self, agent: Agent) -> None:
        await replace(agent, graph="other").create("Alice")
        assert await linked_entities(agent, "Alice repairs clocks") == []

    def test_number_of_phrases_is_bounded(self) -> None:
        assert phrases("a b") == ["a", "a b", "b"]
        assert phrases(" \n ") == []
        assert len(phrases("word " * 2_000)) == 8
        assert "Acme Inc." in phrases("(Acme Inc.), paid")


class TestCreating:
    async def test_creating_a_known_fact_or_entity_returns_the_existing_one(self, agent: Agent) -> None:
        first = await fact(agent, "bees make honey", metadata={"page": 1})
        again = await fact(agent, "bees make honey", metadata={"page": 2})
        assert (again.node_id, again.version, again.metadata) == (first.node_id, 1, {"page": 1})
        outdated = await fact(agent, "bees make honey", status="outdated")
        assert outdated.node_id != first.node_id
        assert (await fact(agent, "bees make honey", status="outdated")).node_id == outdated.node_id
        named = await entity(agent, "Alice", kind="person")
        assert (await entity(agent, "Alice")).node_id == named.node_id
        head = await agent.head()
        assert (head.facts, head.entities) == (2, 1)

    async def test_a_placeholder_becomes_the_entity(self, agent: Agent) -> None:
        await agent.create("Alice")
        await agent.relate(("Alice", "Bob", "knows"))
        bob = await entity(agent, "Bob", kind="person", metadata={"age": 7})
        assert await relations_around(agent, bob.node_id) == [("Alice", "knows", "Bob")]
        head = await agent.head()
        assert (head.entities, head.placeholders) == (2, 0)

    @pytest.mark.proves("graph-contract: create-node-links")
    async def test_a_fact_is_created_with_all_its_links_or_not_at_all(self, agent: Agent) -> None:
        first, alice = await fact(agent, "bees make honey"), await entity(agent, "Alice")
        before = await agent.head()
        for target, named in ((uuid4(), None), (first.node_id, True), (alice.node_id, False)):
            with pytest.raises(NotFound) as refused:
                await fact(agent, "honey is sweet", RequestedLink(target, "RELATED_TO", named))
            assert refused.value.code is ErrorCode.NODE_NOT_FOUND
        assert await agent.head() == before
        linked = await fact(
            agent,
            "honey is sweet",
            RequestedLink(first.node_id, "RELATED_TO", False),
            RequestedLink(alice.node_id, "DESCRIBES", True),
        )
        assert await relations_around(agent, linked.node_id) == [
            ("honey is sweet", "DESCRIBES", "Alice"),
            ("honey is sweet", "RELATED_TO", "bees make honey"),
        ]

    @pytest.mark.parametrize("lifetime", [{"ttl_days": 1e-300}, {"ttl_days": 1e-5}])
    async def test_a_lifetime_of_less_than_a_second_is_refused(self, agent: Agent, lifetime: dict[str, Any]) -> None:
        made = await fact(agent, "bees make honey")
        for refused in (
            fact(agent, "gone at once", **lifetime),
            entity(agent, "Mayfly", **lifetime),
            change(agent, made.node_id, text="gone at once", **lifetime),
        ):
            with pytest.raises(InvalidInput, match="at least 1 second") as error:
                await refused
            assert error.value.path == "ttl_days"
        assert (await change(agent, made.node_id, ttl_days=0.0000116)).content == "bees make honey"

    @pytest.mark.proves("graph-contract: expires-at")
    async def test_an_expiry_in_less_than_a_second_is_refused(self, agent: Agent) -> None:
        made = await fact(agent, "bees make honey")
        now = datetime.now(UTC)
        for moment in (now - timedelta(days=1), now + timedelta(seconds=0.5)):
            for refused in (
                fact(agent, "gone", expires_at=moment),
                entity(agent, "Mayfly", expires_at=moment),
                change(agent, made.node_id, expires_at=moment),
            ):
                with pytest.raises(InvalidInput, match=r"past|at the earliest") as error:
                    await refused
                assert error.value.path == "expires_at"

    @pytest.mark.proves("memgraph: kind-whitelist")
    async def test_a_whitelist_binds_entities_and_facts(self, agent: Agent) -> None:
        async with agent.db.transaction(agent.caller) as tx:
            await graphs.create_graph(tx, NewGraph("strict", kind_whitelist=("person",)))
        strict = replace(agent, graph="strict")
        for refused in (
            fact(strict, "bees make honey"),
            entity(strict, "Alice"),
            entity(strict, "Alice", kind="robot"),
        ):
            with pytest.raises(InvalidInput) as error:
                await refused
            assert error.value.code is ErrorCode.KIND_NOT_ALLOWED
        assert (await entity(strict, "Alice", kind="person")).kind == "person"


class TestChanging:
    @pytest.mark.proves("graph-contract: update-node")
    async def test_a_change_keeps_other_fields_and_a_change_without_effect_makes_no_version(self, agent: Agent) -> None:
        made = await fact(agent, "bees make honey", metadata={"page": 1}, source="book")
        changed = await change(agent, made.node_id, text="bees make wax", status="outdated")
        assert (changed.version, changed.content, changed.metadata, changed.source, changed.status) == (
            *(2, "bees make wax", {"page": 1}, "book", "outdated"),
        )
        assert (await change(agent, made.node_id, text="bees make wax", status="outdated")).version == 2
        assert (await change(agent, made.node_id, metadata={})).metadata == {}
        told = await change(agent, made.node_id, reason="seen")
        assert (told.metadata, told.reason) == ({}, "seen")

    @pytest.mark.proves("graph-contract: expires-at")
    async def test_expires_at_wins_over_ttl(self, agent: Agent) -> None:
        made = await fact(agent, "bees make honey", ttl_days=2)
        assert made.expires_at == made.created_at + timedelta(days=2)
        at = made.created_at + timedelta(days=9)
        assert (await change(agent, made.node_id, ttl_days=5, expires_at=at)).expires_at == at
        renewed = await change(agent, made.node_id, ttl_days=5)
        assert renewed.expires_at == renewed.created_at + timedelta(days=5)
        assert (await change(agent, made.node_id, text="bees rest")).expires_at == renewed.expires_at

    async def test_an_entity_can_only_be_renamed_to_a_free_name(self, agent: Agent) -> None:
        await agent.create("Alice")
        bob = await entity(agent, "Bob")
        with pytest.raises(Conflict):
            await change(agent, bob.node_id, text="Alice")
        with pytest.raises(InvalidInput, match="too long"):
            await change(agent, bob.node_id, text="x" * 513)
        assert (await change(agent, bob.node_id, text="Robert", kind="person")).name == "Robert"
        with pytest.raises(InvalidInput, match="no entity type"):
            await change(agent, (await fact(agent, "bees make honey")).node_id, kind="person")


async def traced(view: GraphView, start: UUID, end: UUID, *, max_paths: int) -> Neighbourhood:
    searched = await exploring.open_trace(view, start, end, max_paths=max_paths)
    return await exploring.traced(view.tx, searched, finish(searched.all_paths()))


class TestExploring:
    async def test_a_trace_includes_placeholders_and_a_neighbourhood_omits_them(self, agent: Agent) -> None:
        await agent.create("Alice", "Bob", "Carol")
        await agent.relate(("Alice", "Nobody", "knows"), ("Nobody", "Bob", "knows"), ("Alice", "Carol", "knows"))
        await agent.relate(("Bob", "Carol", "knows"))
        alice, bob = await entity(agent, "Alice"), await entity(agent, "Bob")
        assert await relations_around(agent, alice.node_id, 2) == [
            ("Alice", "knows", "Carol"),
            ("Bob", "knows", "Carol"),
        ]
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            found = await traced(await graphs.view(tx, None), alice.node_id, bob.node_id, max_paths=5)
        labels = {node.node_id: node.name for node in found.nodes}
        paths = [[labels[node] for node in path] for path in found.paths]
        assert paths == [["Alice", "Carol", "Bob"], ["Alice", "Nobody", "Bob"]]

    @pytest.mark.proves("graph-contract: get-trace")
    async def test_a_trace_returns_at_most_max_paths(self, agent: Agent) -> None:
        await agent.create("Alice", "Bob", "Carol", "Dora")
        await agent.relate(*((a, b, "knows") for a, b in (("Alice", "Carol"), ("Carol", "Bob"), ("Alice", "Dora"))))
        await agent.relate(("Dora", "Bob", "knows"))
        alice, bob = await entity(agent, "Alice"), await entity(agent, "Bob")
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            for most, cut in ((2, None), (1, "paths")):
                found = await traced(await graphs.view(tx, None), alice.node_id, bob.node_id, max_paths=most)
                assert (len(found.paths), found.cut) == (most, cut)

    async def test_the_past_is_shown_as_it_was(self, agent: Agent) -> None:
        first, second = await fact(agent, "one"), await fact(agent, "two")
        async with agent.writing() as (tx, revision):
            await relating.relate(tx, revision, NewEdge(first.node_id, second.node_id, "FOLLOWS_FROM"))
            related = revision.number
        async with agent.writing() as (tx, revision):
            assert await relating.unrelate(tx, revision, first.node_id, second.node_id, None) == 1
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            for as_of, edges in ((None, 0), (str(related), 1), (str(related - 1), 0)):
                found = await exploring.neighbourhood(
                    await graphs.view(tx, None, as_of), first.node_id, depth=1, max_nodes=10
                )
                assert len(found.edges) == edges

    @pytest.mark.proves("graph-contract: search-triplets")
    async def test_a_triplet_creates_its_entities_and_is_found_in_the_past(self, agent: Agent) -> None:
        said = await fact(agent, "somebody repairs something")
        async with agent.writing() as (tx, revision):
            made, _ = await relating.create_triplet(
                tx, revision, NewRelation("Alice", "Clock", "repairs", {"since": 1}), said.node_id
            )
            number = revision.number
        assert await relations_around(agent, said.node_id) == [
            ("Alice", "repairs", "Clock"),
            ("somebody repairs something", "MENTIONS_ENTITY", "Alice"),
            ("somebody repairs something", "MENTIONS_ENTITY", "Clock"),
        ]
        await agent.unrelate(("Alice", "Clock", "repairs"))
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            assert await relating.search_triplets(
                await graphs.view(tx, None), RelationFilter("Alice"), offset=0, limit=9
            ) == (
                [],
                False,
            )
            [found], more = await relating.search_triplets(
                await graphs.view(tx, None, str(number)), RelationFilter("Alice"), offset=0, limit=9
            )
        assert (found.named.target, found.edge, found.fact_id, more) == ("Clock", made.edge, said.node_id, False)


class TestFinding:
    @pytest.mark.proves("graph-contract: search")
    async def test_facts_are_found_by_status_and_by_type(self, agent: Agent) -> None:
        await agent.create("Honey")
        for status in ("active", "outdated", "archived"):
            await fact(agent, f"honey is {status}", status=status)
        assert await find(agent, "honey") == ["Honey", "honey is active"]
        assert sorted(await find(agent, "honey", include_outdated=True, named=False)) == [
            "honey is active",
            "honey is outdated",
        ]
        for status in ("active", "outdated", "archived"):
            assert await find(agent, "honey", status=status, named=False) == [f"honey is {status}"]
        assert await find(agent, "honey", named=True) == ["Honey"]
        assert await find(agent, "honey", named=True, status="outdated") == []

    @pytest.mark.proves("facts: find_similar", "graph-contract: find-similar")
    async def test_similar_facts_are_found_after_embedding(self, agent: Agent) -> None:
        first = await fact(agent, "the cat sleeps on the sofa")
        for text in ("the cat is sleeping on the couch", "interest rates rose in March"):
            await fact(agent, text)
        await fact(agent, "the cat sleeps on a sofa", status="outdated")

        async def similar() -> list[str | None]:
            async with agent.db.transaction(agent.caller, read_only=True) as tx:
                found = await searching.find_similar(
                    await graphs.view(tx, None), first.node_id, threshold=0.5, limit=9, edges=True
                )
            return [one.node.content for one in found]

        assert await similar() == []
        await agent.embed()
        assert await similar() == ["the cat is sleeping on the couch"]

    async def test_observations_without_a_vector_hide_no_similar_fact(self, agent: Agent) -> None:
        cat = await entity(agent, "Cat")
        await agent.observe("Cat", "the cat sleeps on the sofa")
        await fact(agent, "the cat is sleeping on the couch", auto_link=False)
        await agent.embed()
        for said in range(2):
            async with agent.db.transaction(agent.caller, read_only=True) as tx:
                view = await graphs.view(tx, None)
                found = await searching.find_similar(view, cat.node_id, threshold=0.5, limit=9, edges=False)
            assert len(found) == 1
            await agent.observe("Cat", *(f"interest rates rose in month {30 * said + n}" for n in range(30)))

    @pytest.mark.proves("graph-contract: find-similar")
    async def test_similar_facts_come_with_their_relations_on_request(self, agent: Agent) -> None:
        first = await fact(agent, "the cat sleeps on the sofa")
        second = await fact(agent, "the cat is sleeping on the couch")
        async with agent.writing() as (tx, revision):
            await relating.relate(tx, revision, NewEdge(first.node_id, second.node_id, "SIMILAR_TO"))
        await agent.embed()
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            for asked_for, types in ((True, ["SIMILAR_TO"]), (False, [])):
                [found] = await searching.find_similar(
                    await graphs.view(tx, None), first.node_id, threshold=0.5, limit=9, edges=asked_for
                )
                assert [edge.type for edge in found.edges] == types

    @pytest.mark.proves("graph-contract: get-stats")
    async def test_statistics_count_the_content_of_a_graph(self, agent: Agent) -> None:
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            assert (await reading.graph_stats(await graphs.view(tx, "nowhere"))).head is None
        await agent.create("Alice")
        await fact(agent, "Alice repairs clocks")
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            stats = await reading.graph_stats(await graphs.view(tx, None))
        assert stats.head is not None
        assert (stats.head.entities, stats.head.facts, stats.head.relations) == (1, 1, 1)
        assert (stats.kinds, stats.types, stats.waiting) == ([("thing", 1)], [("MENTIONS_ENTITY", 1)], 2)


async def test_another_tenants_entities_are_not_linked_and_its_facts_are_not_similar(
    agent: Agent, db: Database, new_tenant: NewTenant
) -> None:
    async with at_work(db, operator_caller(await new_tenant())) as other:
        await other.create("Alice")
        foreign = await fact(other, "Alice repairs clocks")
        await other.embed()
        assert await linked_entities(agent, "Alice repairs clocks") == []
        await agent.embed()
        own = await fact(agent, "Alice repairs clocks")
        async with agent.db.transaction(agent.caller, read_only=True) as tx:
            assert (
                await searching.find_similar(await graphs.view(tx, None), own.node_id, threshold=0, limit=9, edges=True)
                == []
            )
            with pytest.raises(NotFound):
                await searching.find_similar(
                    await graphs.view(tx, None), foreign.node_id, threshold=0, limit=9, edges=True
                )
