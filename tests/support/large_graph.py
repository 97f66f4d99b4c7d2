"""A graph of realistic size, with texts as agents write them."""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2

from recollect.caller import Caller
from recollect.graph.entities.model import NewEntity
from recollect.graph.hierarchy import service as hierarchy
from recollect.graph.nodes import naming
from recollect.postgres.database import Database
from recollect.postgres.sql import Query
from tests.support.gateway import RunningGateway, revision_of
from tests.support.memories import Agent

ENTITIES = 2_000
TYPES = 130
GRAPHS, VERSIONS, FACTS = 60, 45, 200
HUB = "Atlas platform migration"
TOUCHING = 250
"""An entity, and the number of its relations."""
ALIKE = "alike"
PAIRS = 100
"""A graph of pairs of similar entities, and their number."""
TOP, BELOW, CHAIN = "Engineering organisation", 150, 80
"""An entity, the number of its children, and the length of the chain below the last one of them."""

# fmt: off
_WORDS = (
    "review", "quarterly", "budget", "deploys", "staging", "rollback", "prefers", "asynchronous", "standups", "owns",
    "billing", "pipeline", "migrated", "customer", "dashboards", "incident", "retention", "policy", "Postgres",
    "replica", "latency", "onboarding", "contract", "renewal", "invoices", "Lisbon", "warehouse", "forecast",
    "accessibility", "audit", "release", "checklist", "keyboard", "shortcuts", "vendor", "negotiation", "telemetry",
    "sampling",
)
# fmt: on


@dataclass(frozen=True)
class LargeGraph:
    """Names and ids for the calls of tools, by their meaning, and the revisions of the complete graphs."""

    called: Mapping[str, str]
    revisions: Mapping[str, int]


def sentence(chosen: random.Random, least: int = 60, most: int = 250) -> str:
    """Words with this number of characters."""
    said, length = list[str](), chosen.randint(least, most)
    while sum(map(len, said)) + len(said) <= length:
        said.append(chosen.choice(_WORDS))
    return " ".join(said)[:length].strip().capitalize()


async def large_graph(gateway: RunningGateway, http: httpx2.AsyncClient, db: Database, caller: Caller) -> LargeGraph:
    """Fill the default graph of a tenant, and a few other tables; `http` has the key of one of its admins."""
    chosen, agent = random.Random(1), Agent(db, caller)
    called = await _write_facts(gateway, http, chosen)
    await agent.embed()
    names = [HUB, TOP, *(f"{sentence(chosen, 15, 30)} {n}" for n in range(ENTITIES - 2))]
    wanted = [_entity(name, n, chosen) for n, name in enumerate(names)]
    for begin in range(0, ENTITIES, 500):
        await agent.create(*wanted[begin : begin + 500])
    await agent.relate(*((name, HUB, "part_of") for name in names[2 : 2 + TOUCHING]))
    related = enumerate(itertools.pairwise(names[2:-200]))
    await agent.relate(*((a, b, f"relates_to_{n % TYPES}") for n, (a, b) in related))
    hub = await _place(agent, names)
    await _make_alike(Agent(db, caller, ALIKE), chosen)
    await _write_beside(db, caller)
    above = 1 + BELOW
    called |= {"hub": str(hub), "first": names[2], "above": names[above], "deepest": names[above + CHAIN]}
    return LargeGraph(called, {graph: await revision_of(db, caller, graph) for graph in ("default", ALIKE)})


def _entity(name: str, n: int, chosen: random.Random) -> NewEntity:
    return NewEntity(
        name,
        f"type of {_WORDS[n % TYPES % len(_WORDS)]} {n % TYPES}",
        tuple(sentence(chosen) for _ in range(n % 4)),
        tags=(f"topic:{_WORDS[n % 300 % len(_WORDS)]}-{n % 300}", f"team {n % 20}"),
        importance=n % 11,
    )


async def _place(agent: Agent, names: Sequence[str]) -> UUID:
    """Place many entities below one, and a chain below the last of them; returns the id of the hub."""
    async with agent.writing() as (tx, revision):
        found = await naming.require_entities(tx, revision.graph, names[: 2 + BELOW + CHAIN])
        wide = {found[name].id: found[TOP].id for name in names[2 : 2 + BELOW]}
        deep = {found[b].id: found[a].id for a, b in itertools.pairwise(names[1 + BELOW :][: CHAIN + 1])}
        await hierarchy.set_parents(tx, revision, wide | deep)
        return found[HUB].id


async def _make_alike(agent: Agent, chosen: random.Random) -> None:
    """Write pairs with the same observations and nearly the same name."""
    titles = [sentence(chosen, 90, 120) for _ in range(PAIRS)]
    await agent.create(
        *(
            NewEntity(f"{title} {n}{side}", f"report {n}", (title,), tags=(f"report {n}",))
            for n, title in enumerate(titles)
            for side in ("", "b")
        )
    )


async def _write_facts(gateway: RunningGateway, http: httpx2.AsyncClient, chosen: random.Random) -> dict[str, str]:
    """Write facts, versions of the first and edges from it to the others, symlinks, and graphs; returns two ids."""

    async def call(tool: str, **arguments: Any) -> Any:
        result = await gateway.call(http, tool, arguments, path="/mcp/x/all")
        assert not result["isError"], result
        return result["structuredContent"]

    def fact(n: int) -> dict[str, Any]:
        return {
            "ref": str(n),
            "kind": "note",
            "content": sentence(chosen),
            "summary": sentence(chosen, 20, 60),
            "tags": [f"source:{n % 90}"],
            "metadata": {"ticket": f"OPS-{n}", "channel": "#platform"},
        }

    facts: list[str] = []
    for begin in range(0, FACTS, 50):
        put = await call("put_subgraph", nodes=[fact(n) for n in range(begin, begin + 50)])
        facts += [node["lineage_id"] for node in put["nodes"]]
    for _ in range(VERSIONS - 1):
        await call("put_node", lineage_id=facts[0], kind="note", content=sentence(chosen))
    await call("put_subgraph", edges=[_edge(facts[0], other) for other in facts[1:100]])
    await call("put_subgraph", edges=[_edge(facts[0], other) for other in facts[100:]])
    for n in range(GRAPHS - 2):
        await call("create_graph", name=f"project-{n:03}", metadata={"owner": sentence(chosen, 150, 200)})
    put = await call("put_subgraph", graph="project-000", nodes=[fact(n) for n in range(50)])
    far = [node["lineage_id"] for node in put["nodes"]]
    await call("put_subgraph", edges=[_edge(facts[n], end, to_graph="project-000") for n, end in enumerate(far)])
    await call(
        "put_subgraph",
        graph="project-000",
        edges=[_edge(end, facts[n], to_graph="default") for n, end in enumerate(far)],
    )
    return {"fact": facts[0], "other": facts[-1]}


def _edge(source: str, target: str, **beside: Any) -> dict[str, Any]:
    return {"kind": "cites", "from_lineage": source, "to_lineage": target, **beside}


async def _write_beside(db: Database, caller: Caller) -> None:
    """Write jobs that have ended, and a day of usage."""
    async with db.transaction(caller) as tx:
        await tx.execute(
            Query.compile(
                """INSERT INTO jobs (tenant_id, id, kind, status, result, created_by, created_at, finished_at)
                SELECT :tenant_id, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'import', 'succeeded',
                    '{"entities_created": 200, "relations_created": 100, "observations_added": 600}', 'key of agents',
                    now(), now()
                FROM generate_series(1, 90) n"""
            )
        )
        await tx.execute(
            Query.compile(
                """INSERT INTO usage_hourly (tenant_id, hour, kind, name, calls)
                SELECT :tenant_id, date_trunc('hour', now()) - n * interval '1 hour', 'tool', 'tool_number_' || m, n
                FROM generate_series(1, 20) n, generate_series(1, 15) m"""
            )
        )
