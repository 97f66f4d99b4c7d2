"""Measures groups: their notebooks are remembered, the worker catches up, and all questions are asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from rich.progress import Progress

from tests.benchmarks.quality.groups.catalogue import Group
from tests.benchmarks.quality.groups.notebooks import Answer, Asked, Notebook
from tests.benchmarks.quality.loaded import Loaded, keep
from tests.benchmarks.quality.service import Service


@dataclass(frozen=True, slots=True)
class GroupRun:
    """What measuring a group needs. Notebooks with the same id have the same memories, which are remembered once."""

    service: Service
    loaded: Loaded
    kept_at: Path
    concurrency: int
    progress: Progress

    async def measure(self, opened: Mapping[str, Sequence[Notebook]]) -> dict[str, list[Answer]]:
        """The answers to the questions of all groups, by the name of the group."""
        await self._remember([notebook for notebooks in opened.values() for notebook in notebooks])
        await self.service.settle(self.progress, "groups: embedding")
        task = self.progress.add_task("groups: asking", total=len(opened))
        answers: dict[str, list[Answer]] = {}
        for name, notebooks in opened.items():
            answers[name] = [answer for notebook in notebooks for answer in await self._ask(notebook)]
            self.progress.advance(task)
        return answers

    async def _remember(self, notebooks: Sequence[Notebook]) -> None:
        for notebook in self.progress.track(notebooks, description="groups: remembering"):
            if notebook.id not in self.loaded.graphs:
                calls = [[note.item() for note in call] for call in notebook.calls]
                self.loaded.graphs[notebook.id] = await self.service.remember_calls(calls, notebook.id)
                keep(self.kept_at, self.loaded)

    async def _ask(self, notebook: Notebook) -> list[Answer]:
        keys = _keys(notebook, self.loaded.graphs[notebook.id])
        calls = [{"query": asked.query, **asked.filters} for asked in notebook.questions]
        results = await self.service.recall_each(calls, notebook.id, concurrency=self.concurrency)
        return [
            Answer(notebook.id, asked, list(_ranked(result or [], keys, asked)), result is None)
            for asked, result in zip(notebook.questions, results, strict=True)
        ]


def _keys(notebook: Notebook, ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """The keys of each memory: notes with the same text may be one memory."""
    keys: dict[str, list[str]] = {}
    for note, memory in zip(notebook.notes(), ids, strict=True):
        keys.setdefault(memory, []).append(note.key)
    return keys


def _ranked(ids: Sequence[str], keys: Mapping[str, Sequence[str]], asked: Asked) -> Iterator[str]:
    """The key of each memory that came, the wanted one if it has several."""
    for memory in ids:
        yield next((key for key in keys[memory] if key in asked.wanted), keys[memory][0])


def open_groups(groups: Sequence[Group], seed: int) -> dict[str, Sequence[Notebook]]:
    """The notebooks of each group, by its name, as of today."""
    today = datetime.now(UTC).date()
    return {group.name: group.open_notebooks(seed, today) for group in groups}
