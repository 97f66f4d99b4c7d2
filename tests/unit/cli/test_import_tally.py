"""The summary of an import at the command line."""

import pytest

from recollect_cli.import_tally import ImportTally


@pytest.mark.parametrize(
    ("tally", "summary"),
    [
        (ImportTally(), "0 new entities, 0 new observations, 0 new relations"),
        (
            ImportTally(entities=1, facts=1, observations=1, relations=1, known=1, broken=1),
            "1 new entity, 1 new fact, 1 new observation, 1 new relation; 1 line contained nothing new; "
            "1 broken line, or a part of it, was left out",
        ),
        (
            ImportTally(entities=2, observations=3, known=2, broken=2),
            "2 new entities, 3 new observations, 0 new relations; 2 lines contained nothing new; "
            "2 broken lines or parts of them were left out",
        ),
    ],
)
def test_the_summary_uses_singular_and_plural(tally: ImportTally, summary: str) -> None:
    assert tally.summary() == summary


def test_the_summary_counts_items_that_change_existing_ones() -> None:
    assert ImportTally(changed=1).summary("items").endswith("; 1 item updated existing ones")
