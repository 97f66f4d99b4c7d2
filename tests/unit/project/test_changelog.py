"""The changelog has one section for each subject of a release, and its notes on upgrading name what exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RELEASES = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[1:]
[NOTES] = re.findall(r"^### Upgrading from 0\.1\.0\n(.*?)^### ", RELEASES[0], re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.partition("\n")[0])
def test_each_subject_has_one_section(release: str) -> None:
    subjects = re.findall(r"^### (.*)$", release, re.MULTILINE)
    assert len(subjects) == len(set(subjects))


def test_notes_on_upgrading_are_ordered_by_time() -> None:
    assert re.findall(r"^(\w+):$", NOTES, re.MULTILINE) == ["Before", "During", "After", "Back"]
    assert "(../CHANGELOG.md#upgrading-from-010)" in (ROOT / "docs" / "operations.md").read_text()


def test_notes_on_upgrading_name_existing_settings_and_migrations() -> None:
    settings = set(re.findall(r"^\| `(RECOLLECT_\w+)`", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE))
    named = set(re.findall(r"RECOLLECT_[A-Z_]+", NOTES))
    assert len(named) > 5
    assert named <= settings
    migrations = [path.stem for path in (ROOT / "shared" / "recollect" / "migrations").glob("*.sql")]
    for migration in re.findall(r"`(0\d{3}\w*)`", NOTES):
        assert [each for each in migrations if each.startswith(migration)], migration
