"""The figures of a group, each a mean over its questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from tests.benchmarks.quality.groups.notebooks import Answer

Scorer = Callable[[Answer], float | None]
"""The score of an answer, from 0 to 1, or None if the figure does not count it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A named figure. `aim`: what it should reach, for all measures or for each of some; None: nothing is aimed at."""

    name: str
    scorer: Scorer
    aim: float | Mapping[str, float] | None = None

    def aim_of(self, measure: str) -> float | None:
        """The aim for a measure."""
        return self.aim.get(measure) if isinstance(self.aim, Mapping) else self.aim


@dataclass(frozen=True, slots=True)
class Value:
    """The value of a figure for one measure, its aim, and the number of questions that it counts."""

    measure: str
    figure: str
    value: float
    aim: float | None
    questions: int


def by_measure(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    """The answers to the questions of each measure, in the order in which they are first asked."""
    grouped: dict[str, list[Answer]] = {}
    for answer in answers:
        grouped.setdefault(answer.asked.measure, []).append(answer)
    return grouped


def evaluate(figures: Sequence[Figure], answers: Mapping[str, Sequence[Answer]]) -> list[Value]:
    """The values of all figures for each measure; a figure that counts none of its questions is left out."""
    return [
        Value(measure, figure.name, mean[0], figure.aim_of(measure), mean[1])
        for measure, group in answers.items()
        for figure in figures
        if (mean := _mean([figure.scorer(answer) for answer in group]))
    ]


def _mean(scores: Sequence[float | None]) -> tuple[float, int] | None:
    counted = [score for score in scores if score is not None]
    return (fmean(counted), len(counted)) if counted else None


def recall_at(depth: int | None) -> Scorer:
    """The share of the wanted notes among the first `depth`, or among all that came."""

    def share(answer: Answer) -> float | None:
        wanted = answer.asked.wanted
        return len(wanted.intersection(answer.ranked[:depth])) / len(wanted) if wanted else None

    return share


def empty_with_answer(answer: Answer) -> float | None:
    """1 if nothing came though something answers."""
    return float(not answer.ranked) if answer.asked.wanted else None


def empty_without_answer(answer: Answer) -> float | None:
    """1 if nothing came and nothing answers."""
    return None if answer.asked.wanted else float(not answer.ranked)


def precise(answer: Answer) -> float | None:
    """The share of what came that is wanted; what is tolerated does not count. None if nothing came."""
    counted = [key for key in answer.ranked if key not in answer.asked.tolerated]
    return sum(key in answer.asked.wanted for key in counted) / len(counted) if counted else None


def precise_with_answer(answer: Answer) -> float | None:
    """`precise`, of questions with an answer only."""
    return precise(answer) if answer.asked.wanted else None


def first(answer: Answer) -> float | None:
    """1 if what is wanted comes first."""
    return float(answer.ranked[0] in answer.asked.wanted) if answer.ranked else 0.0


def before_rival(answer: Answer) -> float | None:
    """1 if what is wanted came, and the rival later or not at all."""
    ranks = [rank for rank, key in enumerate(answer.ranked) if key in answer.asked.wanted]
    if not ranks:
        return 0.0
    return float(answer.asked.rival not in answer.ranked[: ranks[0]])
