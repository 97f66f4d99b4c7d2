"""The changelog has one section for each release and each subject of it, and names what exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RELEASES = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
TABLE = re.compile(r"^\| `(RECOLLECT_\w+)`", re.MULTILINE)
MOST_LINES = 150
"""Of a release: who upgrades reads all of it."""


def test_each_subject_of_a_release_has_one_section(subtests: pytest.Subtests) -> None:
    for release in RELEASES:
        with subtests.test(release.partition("\n")[0]):
            subjects = re.findall(r"^### (.*)$", release, re.MULTILINE)
            assert len(subjects) == len(set(subjects))


def test_a_release_is_told_in_a_few_pages(subtests: pytest.Subtests) -> None:
    for release in RELEASES[1:]:
        with subtests.test(release.partition("\n")[0]):
            assert len(release.splitlines()) <= MOST_LINES


def test_notes_of_the_newest_release_name_existing_settings() -> None:
    known = set(TABLE.findall((ROOT / "docs" / "settings.md").read_text()))
    assert len(known) > 50
    assert set(re.findall(r"RECOLLECT_[A-Z_]+", RELEASES[1])) <= known
