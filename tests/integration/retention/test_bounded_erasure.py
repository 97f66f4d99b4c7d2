"""An erasure is bounded by how many names a person has, and searches many of them in pages, as completely as one."""

import asyncio
import threading

import asyncpg
import pytest

from recollect.errors import ErrorCode, TooLarge
from recollect.fairness import computing
from recollect.fairness.computing import finish
from recollect.graph.entities.model import NewEntity
from recollect.graph.nodes import service as nodes
from recollect.graph.nodes.model import NodeFields
from recollect.postgres.sql import Query
from recollect.retention.erasure import model, name_patterns
from recollect.retention.erasure import service as erasure
from recollect.retention.erasure.name_patterns import pattern_of, patterns_of, whole_patterns_of
from tests.support.memories import Agent
from tests.support.timeouts import MAX_WAIT_SECONDS

pytestmark = pytest.mark.whole_database

EXOTIC = "ſtﬁßǰΐ" * 86
"""Letters with many forms: the expression for them is the longest."""


async def named(agent: Agent, person: str, *names: str) -> None:
    """Create a person with these aliases."""
    await agent.create(person)
    async with agent.db.transaction(agent.caller) as tx:
        await tx.execute(
            Query.compile(
                """INSERT INTO aliases (tenant_id, graph_id, node_id, name, added_revision)
                SELECT n.tenant_id, n.graph_id, n.id, i.name, 1 FROM nodes n, unnest(:names::text[]) AS i (name)
                WHERE n.tenant_id = :tenant_id AND n.name = :person AND n.removed_revision IS NULL"""
            ),
            person=person,
            names=names,
        )


async def tried(agent: Agent, name: str = "Mallory") -> model.Receipt:
    """The receipt of a dry run."""
    async with agent.db.transaction(agent.caller, commit=False) as tx:
        return await erasure.erase_person(tx, agent.graph or "default", name, dry_run=True)


async def test_names_in_many_patterns_are_all_found(
    agent: Agent, owner: asyncpg.Connection, subtests: pytest.Subtests
) -> None:
    names = [f"{EXOTIC[n : n + 400]}{n:04}" for n in range(30)]
    within, whole = finish(patterns_of(names)), finish(whole_patterns_of(names))
    assert len(within) == len(whole) == 6
    for name in (names[0], names[-1], names[-1].upper()):
        with subtests.test(name=name[-8:]):
            assert await owner.fetchval("SELECT $1 ~ ANY ($2::text[])", f"so {name} came", within) is True
            assert await owner.fetchval("SELECT $1 ~ ANY ($2::text[])", f" {name}", whole) is True
            assert await owner.fetchval("SELECT $1 ~ ANY ($2::text[])", f"so {name}s came", within) is False


async def test_patterns_are_bounded_in_length(subtests: pytest.Subtests) -> None:
    """Whatever the names, PostgreSQL gets few expressions, each of which it compiles at once."""
    most = model.MAX_NAME_CHARACTERS
    for kind, names in {
        "long": [f"{EXOTIC[n % 6 : n % 6 + 506]}{n:06}" for n in range(most // 512)],
        "short": [f"n{n}" for n in range(model.MAX_NAMES)],
        "awkward": [f"{'x' * 510}{n:02}" if n % 2 else f"y{n}" for n in range(60)],
    }.items():
        with subtests.test(kind):
            model.require_searchable(names)
            patterns = finish(patterns_of(names))
            assert len(patterns) <= 2 * most // name_patterns.MAX_PATTERN_NAMES
            assert max(map(len, patterns)) < 60_000


@pytest.mark.proves("security: erasure")
async def test_too_many_names_are_refused_with_advice(agent: Agent, subtests: pytest.Subtests) -> None:
    for kind, names in {
        "number": [f"alias {n}" for n in range(model.MAX_NAMES)],
        "characters": [f"{EXOTIC[:506]}{n:06}" for n in range(model.MAX_NAME_CHARACTERS // 512)],
    }.items():
        with subtests.test(kind):
            await named(agent, f"few {kind}", *names[:-1])
            assert len((await tried(agent, f"few {kind}")).names) == len(names)
            await named(agent, f"many {kind}", *(f"{name[1:]}x" for name in names), "one more")
            with pytest.raises(TooLarge, match="aliases") as refused:
                await tried(agent, f"many {kind}")
            assert refused.value.code is ErrorCode.TOO_COSTLY


async def test_names_that_lead_to_further_names_are_bounded(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each merged entity had a name of its own, by which an earlier deleted one is found."""
    await agent.create("a", "b", "c")
    await agent.merge(["b", "a"], "b")
    await agent.merge(["c", "b"], "c")
    assert (await tried(agent, "c")).names == ("a", "b", "c")
    monkeypatch.setattr(erasure, "MAX_LINKED_NAMES", 1)
    with pytest.raises(TooLarge, match="each of which led"):
        await tried(agent, "c")


@pytest.mark.parametrize("bound", ["PAGE_NODES", "PAGE_BYTES"])
async def test_entities_are_redacted_in_pages(agent: Agent, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(nodes, bound, 1)
    read = list[int]()
    read_heads = nodes.read_heads

    async def counting(tx: object, graph: object, node_ids: list[object], **named: object) -> object:
        read.append(len(node_ids))
        return await read_heads(tx, graph, node_ids, **named)  # type: ignore[arg-type]

    async with agent.writing() as (tx, revision):
        told = [NodeFields(f"e{n}", content=f"{n} of Ada", metadata={"by": ["Ada", n], "n": n}) for n in range(5)]
        await nodes.create_nodes(tx, revision, told)
    await agent.create(NewEntity("Ada"))
    monkeypatch.setattr(nodes, "read_heads", counting)
    async with agent.db.transaction(agent.caller) as tx:
        receipt = await erasure.erase_person(tx, "default", "Ada")
    assert (receipt.erased["cleared_entities"], receipt.kept, read) == (5, {}, [1] * 5)
    async with agent.writing() as (tx, revision):
        heads = await nodes.require_entity_heads(tx, revision.graph, [f"e{n}" for n in range(5)])
    assert [(head.content, head.metadata) for head in heads.values()] == [(None, {"n": n}) for n in range(5)]


async def test_statements_of_a_dry_run_end_sooner(agent: Agent) -> None:
    await agent.create("Ada")
    async with agent.db.transaction(agent.caller, commit=False) as tx:
        await erasure.erase_person(tx, "default", "Ada", dry_run=True)
        assert await tx.fetchval(Query.compile("SHOW statement_timeout")) == "2min"


async def test_a_cancelled_erasure_ends_between_two_names(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next name is not looked at, where the expressions for the names take long to write."""
    await named(agent, "Mallory", *(f"alias {n}" for n in range(9)))
    written, has_begun, goes_on = list[str](), threading.Event(), threading.Event()

    def slowly(names: list[str]) -> str:
        written.extend(names)
        has_begun.set()
        assert goes_on.wait(MAX_WAIT_SECONDS)
        return pattern_of(names)

    monkeypatch.setattr(name_patterns, "pattern_of", slowly)
    monkeypatch.setattr(name_patterns, "MAX_PATTERN_NAMES", 1)
    monkeypatch.setattr(computing, "SLICE_SECONDS", 1e-9)
    erasing = asyncio.create_task(tried(agent))
    assert await asyncio.to_thread(has_begun.wait, MAX_WAIT_SECONDS)
    erasing.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await erasing
    assert len(written) == 1
