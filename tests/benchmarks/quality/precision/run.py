"""Remembers the beliefs, asks all cases, and goes through the sessions, in each way of using the service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec
from rich.progress import Progress

from tests.benchmarks.quality.loaded import Loaded, keep
from tests.benchmarks.quality.precision.fixtures import USER, Belief, Case, Fixtures, Turn
from tests.benchmarks.quality.precision.judging import Judged, assemble, judge_case, judge_turn
from tests.benchmarks.quality.service import Service


@dataclass(frozen=True, slots=True)
class Way:
    """A way of using the service. `by_scope`: with the scope as tag, and as filter; `forgets`: what no longer holds."""

    name: str
    by_scope: bool = False
    forgets: bool = False

    def item(self, belief: Belief) -> dict[str, Any]:
        """What is remembered of a belief."""
        return {"text": belief.text} | ({"tags": belief.scope} if self.by_scope else {})

    def arguments(self, case: Case) -> dict[str, Any]:
        """How a case is asked: with the first of its scopes, as the harness hands it to every memory system."""
        tags = {"tags": case.scope[:1]} if self.by_scope else {}
        return {"query": case.query, "limit": case.budget.max_beliefs} | tags


WAYS = (
    Way("text only"),
    Way("scope as tag and filter", by_scope=True),
    Way("and forgotten if superseded", by_scope=True, forgets=True),
)


@dataclass(frozen=True, slots=True)
class MeasuredWay:
    """What came of all cases, and of all turns of the sessions."""

    cases: Sequence[Judged]
    turns: Sequence[Judged]


@dataclass(slots=True)
class Notes:
    """The beliefs as they are by now, and the memory of each; `name` is part of the names of their graphs."""

    name: str
    beliefs: dict[str, Belief]
    memories: dict[str, str] = field(default_factory=dict)

    def graph(self, user: str) -> str:
        """The graph of a user, who has none without beliefs."""
        return f"{self.name}-{user}"

    def found(self, memories: Sequence[str]) -> list[str]:
        """The ids of the beliefs of memories."""
        of = {memory: belief for belief, memory in self.memories.items()}
        return [of[memory] for memory in memories]


@dataclass(frozen=True, slots=True)
class PrecisionRun:
    """What measuring needs."""

    service: Service
    loaded: Loaded
    kept_at: Path
    progress: Progress

    async def measure(self, fixtures: Fixtures) -> Mapping[str, MeasuredWay]:
        """What came in each way, by its name."""
        measured: dict[str, MeasuredWay] = {}
        for number, way in enumerate(self.progress.track(WAYS, description="precision")):
            cases = await self._ask_cases(way, fixtures, f"precision-{number}")
            # A session changes what is remembered, so each has graphs of its own.
            turns = await self._go_through(way, fixtures, f"precision-{number}-{token_hex(4)}")
            measured[way.name] = MeasuredWay(cases, turns)
        return measured

    async def _ask_cases(self, way: Way, fixtures: Fixtures, name: str) -> list[Judged]:
        notes = await self._remember(way, fixtures.beliefs, name)
        judged: list[Judged] = []
        for case in fixtures.cases:
            found, seconds = await self._ask(way, notes, case)
            judged.append(judge_case(fixtures.beliefs, case, assemble(fixtures.beliefs, case, found), seconds))
        return judged

    async def _go_through(self, way: Way, fixtures: Fixtures, name: str) -> list[Judged]:
        notes = await self._remember(way, fixtures.beliefs, name)
        judged: list[Judged] = []
        for session in fixtures.sessions:
            for turn in session.turns:
                case = session.case(turn)
                found, seconds = await self._ask(way, notes, case)
                judged.append(judge_turn(case, assemble(list(notes.beliefs.values()), case, found), seconds))
                await self._learn(way, notes, turn)
        return judged

    async def _ask(self, way: Way, notes: Notes, case: Case) -> tuple[list[str], float]:
        """The beliefs that are found, best first; a case without a question, or that wants none, is not asked."""
        if not case.query.strip() or case.budget.max_beliefs == 0:
            return [], 0.0
        exchange = await self.service.call("recall", notes.graph(case.user_id), way.arguments(case))
        if exchange.is_refused():
            return [], exchange.seconds
        memories = exchange.result()["structuredContent"]["memories"]
        return notes.found([memory["id"] for memory in memories]), exchange.seconds

    async def _remember(self, way: Way, beliefs: Sequence[Belief], name: str) -> Notes:
        """Remember the beliefs of each user, and wait for the worker."""
        notes = Notes(name, {belief.id: belief for belief in beliefs})
        for user in dict.fromkeys(belief.user_id for belief in beliefs):
            theirs = [belief for belief in beliefs if belief.user_id == user]
            graph = notes.graph(user)
            if graph not in self.loaded.graphs:
                self.loaded.graphs[graph] = await self._remember_in(way, graph, theirs)
                keep(self.kept_at, self.loaded)
            ids = [belief.id for belief in theirs]
            notes.memories |= zip(ids, self.loaded.graphs[graph], strict=True)
        await self.service.settle(self.progress, "precision: embedding")
        return notes

    async def _remember_in(self, way: Way, graph: str, beliefs: Sequence[Belief]) -> list[str]:
        memories = await self.service.remember_calls([[way.item(belief) for belief in beliefs]], graph)
        over = [memory for memory, belief in zip(memories, beliefs, strict=True) if not belief.holds]
        if way.forgets and over:
            (await self.service.call("forget", graph, {"ids": over})).result()
        return memories

    async def _learn(self, way: Way, notes: Notes, turn: Turn) -> None:
        """What is learned after a turn: a new belief, or more names of one."""
        if (belief := turn.create_belief_at_turn) is not None:
            notes.beliefs[belief.id] = belief
            memories = await self.service.remember_calls([[way.item(belief)]], notes.graph(belief.user_id))
            notes.memories[belief.id] = memories[0]
        if (more := turn.update_belief_at_turn) is not None:
            old = notes.beliefs[more.belief_id]
            aliases = list(dict.fromkeys([*old.aliases, *(alias.strip().lower() for alias in more.add_aliases)]))
            notes.beliefs[old.id] = new = msgspec.structs.replace(old, aliases=aliases)
            change = {"id": notes.memories[old.id], "text": new.text}
            (await self.service.call("revise", notes.graph(USER), change)).result()
        await self.service.settle(self.progress, "precision: embedding")
