"""Settings from files, such as secrets that are mounted into containers."""

from pathlib import Path

import pytest

from recollect.errors import InvalidInput
from recollect.settings import Settings


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the files."""
    monkeypatch.setenv("RECOLLECT_SECRETS_DIR", str(tmp_path))
    return tmp_path


def test_a_file_sets_the_setting_of_its_name(secrets: Path) -> None:
    (secrets / "recollect_database_url").write_text("postgresql://recollect_app:secret@db/recollect\n")
    (secrets / "recollect_port").write_text("9000")
    assert Settings().database_url == "postgresql://recollect_app:secret@db/recollect"
    assert Settings().port == 9000


def test_a_variable_takes_precedence_over_a_file(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (secrets / "recollect_redis_url").write_text("redis://of-the-file")
    monkeypatch.setenv("RECOLLECT_REDIS_URL", "redis://of-the-variable")
    assert Settings().redis_url == "redis://of-the-variable"


def test_other_files_are_ignored(secrets: Path) -> None:
    (secrets / "postgres_password").write_text("of another program")
    assert Settings().database_url == Settings.model_fields["database_url"].default


def test_a_missing_folder_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_SECRETS_DIR", "/nowhere/at/all")
    with pytest.raises(InvalidInput, match="no such folder"):
        Settings()
