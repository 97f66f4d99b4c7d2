"""A data folder is Recollect's own: nothing is put among the files of others, and what is wrong comes with advice."""

import errno
import os
from pathlib import Path
from typing import cast

import pytest

from recollect.errors import InvalidInput
from recollect.settings import Settings
from recollect_local.address import Endpoint
from recollect_local.data_folder import MARKER, DataFolder
from recollect_local.postgres import LocalPostgres
from recollect_local.running import require_endpoint, settings_of_running
from recollect_local.stack import LocalOptions, _plain, run_local

FOREIGN = (("Makefile",), ("lock", "Makefile"), ("postgres", "src"), ("api-key", "notes.txt"))
OWN = (
    (),
    ("lost+found",),
    (MARKER, "notes.txt"),
    ("lock",),
    ("lock", "logs", "postgres", "valkey", "key-secret", "api-key", "admin-key", "embedder"),
    ("lock", "key-secret", "ready.json"),
    ("key-secret", "api-key"),
)


def make(folder: Path, names: tuple[str, ...]) -> DataFolder:
    folder.mkdir()
    for name in names:
        (folder / name).write_text("x")
    return DataFolder(folder)


@pytest.mark.proves("security: own-data-folder")
def test_a_folder_of_others_is_refused_and_left_as_it_is(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for number, names in enumerate(FOREIGN):
        with subtests.test(" ".join(names)):
            folder = make(tmp_path / str(number), names)
            with pytest.raises(InvalidInput, match=r"has files that are not Recollect's.*--data-dir"), folder.locked():
                pytest.fail("it was accepted")
            assert set(os.listdir(folder.path)) == set(names)


@pytest.mark.proves("security: own-data-folder")
def test_an_empty_folder_and_one_of_an_earlier_start_are_accepted_and_marked(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for number, names in enumerate(OWN):
        with subtests.test(" ".join(names)):
            folder = make(tmp_path / str(number), names)
            with folder.locked():
                pass
            (folder.path / "notes.txt").write_text("put there later")
            with folder.locked():
                assert (folder.path / ".gitignore").read_text() == "*\n"
    with DataFolder(tmp_path / "new" / "one").locked():
        assert (tmp_path / "new" / "one" / MARKER).exists()


def test_the_command_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "main.py").touch()
    assert run_local(LocalOptions(data_dir=tmp_path, port=0)) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"recollect local: {tmp_path} has files that are not Recollect's.")
    assert os.listdir(tmp_path) == ["main.py"]


def test_an_error_of_the_system_comes_with_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert run_local(LocalOptions(data_dir=tmp_path / "file", port=0)) == 1
    told = capsys.readouterr().err
    assert f"{tmp_path / 'file'}: " in told
    assert "choose another with --data-dir" in told
    for number in (errno.EACCES, errno.EROFS, errno.ENOSPC):
        told = _plain(OSError(number, os.strerror(number), "/srv/data/lock"))
        assert told.startswith(f"/srv/data/lock: {os.strerror(number)}. ")
        assert "--data-dir" in told
    assert _plain(OSError(errno.EIO, "Input/output error", "/srv/data/lock")) == "/srv/data/lock: Input/output error."


def test_a_cluster_of_another_major_version_is_refused_with_what_to_do(tmp_path: Path) -> None:
    home = tmp_path / "postgres"
    home.mkdir()
    (home / "PG_VERSION").write_text("17\n")
    with pytest.raises(InvalidInput) as refused:
        LocalPostgres(tmp_path).start()
    assert refused.value.message.startswith(
        f"{home} was made by PostgreSQL 17, and this version of Recollect has Postg"
    )
    assert "`recollect export`" in refused.value.message
    assert os.listdir(home) == ["PG_VERSION"]
    assert not (tmp_path / "logs").exists()


def test_commands_find_only_a_stack_that_runs(tmp_path: Path) -> None:
    folder, settings = DataFolder(tmp_path), Settings(data_dir=tmp_path)
    assert settings_of_running(settings) is None
    with pytest.raises(InvalidInput, match=f"does not run on {tmp_path}"):
        require_endpoint(folder)
    endpoint = Endpoint("http://127.0.0.1:8800/mcp", "http://127.0.0.1:8800/v1", "rcl_agent_x", "demo", "rcl_admin_x")
    secret = folder.key_secret()
    with folder.published(endpoint, None):
        assert require_endpoint(folder) == endpoint
        assert settings_of_running(settings) is None, "its database is not the one of this folder"
        (tmp_path / "postgres").mkdir()
        (tmp_path / "postgres" / "postmaster.pid").touch()
        found = settings_of_running(settings)
        own = settings_of_running(Settings(data_dir=tmp_path, database_url="postgresql://a@b/c"))
    assert found is not None
    assert own is not None
    assert own.database_url == "postgresql://a@b/c"
    assert found.key_secret.get_secret_value() == own.key_secret.get_secret_value() == secret
    assert (found.base_url, own.base_url) == ("http://localhost:8800", "http://localhost:8800")
    assert "recollect_app@/recollect?host=" in found.database_url
    assert "postgres@/recollect?host=" in cast(str, found.owner_database_url)
    assert settings_of_running(settings) is None
