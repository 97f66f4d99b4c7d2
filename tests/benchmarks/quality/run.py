"""One run: every conversation is remembered in every shape and questioned, and so are the baselines."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import Progress

from recollect.embedding import Embedder
from recollect.retrieval.recall.model import CHARACTERS_PER_TOKEN
from tests.benchmarks.quality.baselines import rank_by_meaning, rank_by_words
from tests.benchmarks.quality.conversations import Conversation, Labelled
from tests.benchmarks.quality.loaded import Loaded, keep
from tests.benchmarks.quality.scores import Precision, Scores, SessionScores, precision, score, score_sessions
from tests.benchmarks.quality.service import LIMIT, RecallAnswer, Service


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question and the result of a way of answering: ids of memories or turns, best first. `scores`: none without
    evidence. `memories`: as returned by the service; `by_default`: those without a given limit or budget. `sessions`:
    those of the result, best first; `wanted_sessions`: those with evidence."""

    conversation: str
    question: Labelled
    ranked: Sequence[str]
    wanted: frozenset[str]
    seconds: float
    memories: Sequence[Mapping[str, Any]] = ()
    by_default: Sequence[Mapping[str, Any]] = ()
    sessions: Sequence[int] = ()
    wanted_sessions: frozenset[int] = frozenset()

    @property
    def precision(self) -> Precision | None:
        """The precision of the default result; None if it is empty, or the question has no evidence."""
        sized = [(memory["id"], len(memory["text"]) // CHARACTERS_PER_TOKEN + 1) for memory in self.by_default]
        return precision(sized, self.wanted) if sized and self.wanted else None

    @property
    def scores(self) -> Scores | None:
        """The scores of the ranking."""
        return score(self.ranked, self.wanted) if self.wanted else None

    @property
    def session_scores(self) -> SessionScores | None:
        """The scores of the sessions from which the result is."""
        return score_sessions(self.sessions, self.wanted_sessions) if self.wanted_sessions else None


@dataclass(frozen=True, slots=True)
class Run:
    """The data that all ways of answering share."""

    conversations: Sequence[Conversation]
    service: Service
    loaded: Loaded
    kept_at: Path
    concurrency: int
    explain: bool
    progress: Progress

    async def ask_service(self, shape: str) -> list[AskedQuestion]:
        """Remember missing conversations, wait for the worker, and ask all questions."""
        task = self.progress.add_task(f"{shape}: remembering", total=len(self.conversations))
        for conversation in self.conversations:
            await self._remember(conversation, shape)
            self.progress.advance(task)
        await self.service.settle(self.progress, f"{shape}: embedding")
        task = self.progress.add_task(f"{shape}: asking", total=len(self.conversations))
        asked: list[AskedQuestion] = []
        for conversation in self.conversations:
            asked += await self._ask(conversation, shape)
            self.progress.advance(task)
        return asked

    async def ask_baselines(self, embedder: Embedder) -> dict[str, list[AskedQuestion]]:
        """Answer the same questions without the service."""
        task = self.progress.add_task("baselines", total=len(self.conversations))
        words: list[AskedQuestion] = []
        meaning: list[AskedQuestion] = []
        for conversation in self.conversations:
            rank = rank_by_words(conversation, LIMIT)
            texts = [question.text for question in conversation.questions]
            nearest = await rank_by_meaning(embedder, conversation, texts, LIMIT)
            for question, near in zip(conversation.questions, nearest, strict=True):
                words.append(_of_turns(conversation, question, rank(question.text)))
                meaning.append(_of_turns(conversation, question, near))
            self.progress.advance(task)
        return {"BM25": words, "vectors": meaning}

    async def _remember(self, conversation: Conversation, shape: str) -> None:
        graph = _graph(conversation, shape)
        if graph not in self.loaded.graphs:
            self.loaded.graphs[graph] = await self.service.remember(conversation, graph, shape)
            keep(self.kept_at, self.loaded)

    async def _ask(self, conversation: Conversation, shape: str) -> list[AskedQuestion]:
        graph = _graph(conversation, shape)
        memories = dict(zip([turn.id for turn in conversation.turns], self.loaded.graphs[graph], strict=True))
        answers = await self.service.ask(
            conversation.questions, graph, concurrency=self.concurrency, explain=self.explain
        )
        return [_of_memories(conversation, answer, memories) for answer in answers]


def _graph(conversation: Conversation, shape: str) -> str:
    return f"{re.sub('[^A-Za-z0-9_@-]', '-', conversation.id)[:100]}--{shape}"


def _of_memories(conversation: Conversation, answer: RecallAnswer, memories: Mapping[str, str]) -> AskedQuestion:
    # Two turns with the same words are one memory, so results and evidence are compared as memories.
    wanted = frozenset(memories[turn] for turn in answer.question.evidence)
    sessions = {memories[turn.id]: turn.session for turn in conversation.turns}
    return AskedQuestion(
        conversation.id,
        answer.question,
        answer.ids,
        wanted,
        answer.seconds,
        answer.memories,
        answer.by_default,
        list(dict.fromkeys(sessions[memory] for memory in answer.ids)),
        frozenset(sessions[memory] for memory in wanted),
    )


def _of_turns(conversation: Conversation, question: Labelled, places: Sequence[int]) -> AskedQuestion:
    turns = [conversation.turns[place] for place in places]
    return AskedQuestion(
        conversation.id,
        question,
        [turn.id for turn in turns],
        question.evidence,
        0.0,
        sessions=list(dict.fromkeys(turn.session for turn in turns)),
        wanted_sessions=frozenset(turn.session for turn in conversation.turns if turn.id in question.evidence),
    )
