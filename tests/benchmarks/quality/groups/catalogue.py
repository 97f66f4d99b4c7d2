"""All groups, in the order in which they are measured."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from tests.benchmarks.quality.groups import (
    days,
    facts,
    filters,
    identifiers,
    languages,
    names,
    spelling,
    typos,
    updates,
)
from tests.benchmarks.quality.groups.figures import Figure, by_measure
from tests.benchmarks.quality.groups.notebooks import Answer, Notebook


@dataclass(frozen=True, slots=True)
class Group:
    """A kind of question: its notebooks, made of the seed and the day of the run, and its figures.

    `measures`: what the answers are grouped by; each group has its own values of the figures.
    """

    name: str
    open_notebooks: Callable[[int, date], Sequence[Notebook]]
    figures: Sequence[Figure]
    measures: Callable[[Sequence[Answer]], Mapping[str, Sequence[Answer]]] = by_measure


GROUPS = {
    group.name: group
    for group in (
        Group("facts", facts.open_notebooks, facts.FIGURES),
        Group("updates", updates.open_notebooks, updates.FIGURES),
        Group("days", days.open_notebooks, days.FIGURES),
        Group("filters", filters.open_notebooks, filters.FIGURES),
        Group("names", names.open_notebooks, names.FIGURES),
        Group("identifiers", identifiers.open_notebooks, identifiers.FIGURES, identifiers.by_way),
        Group("typos", typos.open_notebooks, typos.FIGURES),
        Group("spelling", spelling.open_notebooks, spelling.FIGURES),
        Group("languages", languages.open_notebooks, languages.FIGURES, languages.by_language),
        Group("across", languages.open_notebooks_across, languages.ACROSS_FIGURES),
    )
}
