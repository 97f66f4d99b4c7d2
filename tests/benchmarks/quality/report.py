"""The results, as a table and as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from tests.benchmarks.quality.conversations import APART
from tests.benchmarks.quality.run import AskedQuestion
from tests.benchmarks.quality.scores import DEPTH, SESSION_DEPTH, mean, mean_of_sessions, mean_precision

OVERALL = "all with an answer"


def print_quality(found: Mapping[str, Sequence[AskedQuestion]], title: str, console: Console) -> None:
    """Print a table of all ways of answering and all categories."""
    table = Table(box=box.SIMPLE, pad_edge=False, title=title)
    for column in (
        "",
        "category",
        "questions",
        f"recall@{DEPTH}",
        f"complete@{DEPTH}",
        "MRR",
        f"nDCG@{DEPTH}",
        "empty",
    ):
        table.add_column(column, justify="right" if column not in ("", "category") else "left", no_wrap=True)
    for way, asked in found.items():
        for category, group in by_category(asked).items():
            table.add_row(way, category, str(len(group)), *_cells(group))
        table.add_section()
    console.print(table)
    for way, asked in found.items():
        console.print(f"{way}, by session: {_by_session(asked)}")
    for way, asked in found.items():
        if any(one.seconds for one in asked):
            console.print(f"{way}: {_latency(asked)}")
            console.print(f"{way}, by default: {_precision(asked)}")


def by_category(asked: Sequence[AskedQuestion]) -> dict[str, list[AskedQuestion]]:
    """Group the questions: first all with an answer, then each category."""
    groups = {OVERALL: [one for one in asked if one.question.category not in APART]}
    for one in sorted(asked, key=lambda one: (one.question.category in APART, one.question.category)):
        groups.setdefault(one.question.category, []).append(one)
    return {category: group for category, group in groups.items() if group}


def write_questions(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write questions with their results, one JSON object per line."""
    path.write_bytes(msgspec.json.Encoder().encode_lines(rows))


def question_rows(found: Mapping[str, Sequence[AskedQuestion]]) -> list[dict[str, Any]]:
    """All questions about conversations with their results, to be written as JSON."""
    return [
        {
            "way": way,
            "conversation": one.conversation,
            "category": one.question.category,
            "question": one.question.text,
            "evidence": sorted(one.question.evidence),
            "wanted": sorted(one.wanted),
            "ranked": one.ranked,
            "scores": one.scores,
            "memories": one.memories,
            "seconds": one.seconds,
        }
        for way, asked in found.items()
        for one in asked
    ]


def _cells(group: Sequence[AskedQuestion]) -> list[str]:
    scores = [one.scores for one in group if one.scores is not None]
    empty = f"{sum(not one.ranked for one in group) / len(group):.2f}"
    if not scores:
        return ["", "", "", "", empty]
    means = mean(scores)
    return [*(f"{value:.3f}" for value in (means.recall, means.complete, means.mrr, means.ndcg)), empty]


def _precision(asked: Sequence[AskedQuestion]) -> str:
    """The mean precision over questions that have an answer and got a result."""
    precisions = [one.precision for one in asked if one.question.category not in APART]
    known = [precision for precision in precisions if precision is not None]
    if not known:
        return "nothing came back"
    means = mean_precision(known)
    return (
        f"{means.memories:.1f} memories of {means.tokens:.0f} tokens, "
        f"evidence {means.of_memories:.3f} of memories, {means.of_tokens:.3f} of tokens"
    )


def _by_session(asked: Sequence[AskedQuestion]) -> str:
    scores = [one.session_scores for one in asked if one.question.category not in APART]
    means = mean_of_sessions([one for one in scores if one is not None])
    return f"recall@{SESSION_DEPTH} {means.recall:.3f}, the first has evidence {means.first:.3f}"


def _latency(asked: Sequence[AskedQuestion]) -> str:
    seconds = sorted(one.seconds for one in asked)
    return ", ".join(f"p{share} {1_000 * seconds[len(seconds) * share // 100]:.1f} ms" for share in (50, 95))
