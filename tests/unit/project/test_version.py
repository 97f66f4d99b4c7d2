"""The version is the same everywhere."""

import re
import tomllib
from datetime import date
from pathlib import Path

from recollect import __version__

ROOT = Path(__file__).parents[3]
RELEASES = re.findall(r"^## (\d+\.\d+\.\d+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_newest_release_in_the_changelog_is_this_version() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert [RELEASES[0][0], pyproject["project"]["version"]] == [__version__, __version__]


def test_releases_are_dated_and_the_newest_comes_first() -> None:
    dates = [date.fromisoformat(day) for _, day in RELEASES]
    assert dates == sorted(dates, reverse=True)


def test_the_section_of_unreleased_changes_comes_first() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings == ["Unreleased", *(f"{version} - {day}" for version, day in RELEASES)]
