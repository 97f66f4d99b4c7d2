"""The figures of groups, as a table beside what is aimed at, and as lines of JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tests.benchmarks.quality.groups.catalogue import GROUPS
from tests.benchmarks.quality.groups.figures import Value, evaluate
from tests.benchmarks.quality.groups.notebooks import Answer

_TEXT_COLUMNS = ("group", "measure", "figure")


def print_groups(answers: Mapping[str, Sequence[Answer]], title: str, console: Console) -> None:
    """Print a table of all groups, measures and figures, and how many calls were refused."""
    table = Table(box=box.SIMPLE, pad_edge=False, title=title)
    for column in (*_TEXT_COLUMNS, "questions", "value", "aim"):
        table.add_column(column, justify="left" if column in _TEXT_COLUMNS else "right", no_wrap=True)
    for name, given in answers.items():
        for value in values_of(name, given):
            aim = "" if value.aim is None else f"{value.aim:.2f}"
            table.add_row(name, value.measure, value.figure, str(value.questions), f"{value.value:.3f}", aim)
        table.add_section()
    console.print(table)
    for name, given in answers.items():
        if refused := sum(answer.refused for answer in given):
            console.print(f"{name}: {refused} of {len(given)} questions were refused, and count as if nothing came")


def values_of(name: str, answers: Sequence[Answer]) -> list[Value]:
    """The values of all figures of a group."""
    group = GROUPS[name]
    return evaluate(group.figures, group.measures(answers))


def group_rows(answers: Mapping[str, Sequence[Answer]]) -> Iterator[dict[str, Any]]:
    """Each question with what came, to be written as JSON."""
    for name, given in answers.items():
        for answer in given:
            asked = answer.asked
            yield {
                "group": name,
                "measure": asked.measure,
                "notebook": answer.notebook,
                "question": asked.query,
                "filters": asked.filters,
                "wanted": sorted(asked.wanted),
                "rival": asked.rival,
                "ranked": answer.ranked,
                "refused": answer.refused,
            }
