"""The secrets in a data folder outlive a crash, and a damaged one is refused before anything is overwritten."""

import os
import stat
from pathlib import Path

import pytest

from recollect.errors import InvalidInput
from recollect_local.data_folder import DataFolder, write_private
from recollect_local.demo_keys import DemoKeys
from recollect_local.stack import LocalOptions, run_local

KEYS = DemoKeys(agent="rcl_agent_one", admin="rcl_admin_one")


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """The folder of an earlier start."""
    folder = DataFolder(tmp_path)
    folder.key_secret()
    folder.keep_keys(KEYS)
    return folder


def test_the_secret_is_made_once(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    secret = folder.key_secret()
    assert len(secret.encode()) >= 32
    assert folder.key_secret() == secret


@pytest.mark.proves("security: local-data-folder")
def test_a_file_without_a_whole_secret_is_refused_by_name(folder: DataFolder, subtests: pytest.Subtests) -> None:
    file = folder.path / "key-secret"
    for left in (b"", b"\n", b" " * 40, b"k" * 31 + b"\n", b"\0" * 44, b"\xff" * 44, b"k" * 20 + b"\0" * 24):
        with subtests.test(repr(left)):
            file.write_bytes(left)
            with pytest.raises(InvalidInput, match="key-secret: It does not hold a secret of at least 32") as refused:
                folder.key_secret()
            assert refused.value.path == str(file)
            assert "delete key-secret, api-key and admin-key" in refused.value.message
            assert file.read_bytes() == left
    file.write_bytes(b"k" * 32)
    assert folder.key_secret() == "k" * 32


def test_a_secret_that_is_gone_is_not_replaced_while_its_keys_are_there(folder: DataFolder) -> None:
    file = folder.path / "key-secret"
    file.unlink()
    with pytest.raises(InvalidInput, match="key-secret: It is missing") as refused:
        folder.key_secret()
    assert not file.exists()
    assert folder.keys() == KEYS
    for name in ("api-key", "admin-key"):  # What the message says to do.
        assert name in refused.value.message
        (folder.path / name).unlink()
    assert len(folder.key_secret()) >= 32


@pytest.mark.proves("security: local-data-folder")
def test_the_stack_refuses_it_and_overwrites_nothing(
    folder: DataFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RECOLLECT_KEY_SECRET", raising=False)
    (folder.path / "key-secret").write_text("")
    assert run_local(LocalOptions(data_dir=folder.path, port=0)) == 1
    assert f"{folder.path / 'key-secret'}: It does not hold a secret" in capsys.readouterr().err
    assert (folder.path / "key-secret").read_bytes() == b""
    assert folder.keys() == KEYS
    assert set(os.listdir(folder.path)) == {"lock", ".recollect", ".gitignore", "key-secret", "api-key", "admin-key"}


def test_a_file_is_durable_before_it_has_its_name_and_its_name_before_we_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync = os.fsync

    def noted(file: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "content"
        done.append(f"{kind}, {'named' if (tmp_path / 'secret').exists() else 'not named'}")
        sync(file)

    monkeypatch.setattr(os, "fsync", noted)
    write_private(tmp_path / "secret", "text")
    assert done == ["content, not named", "folder, named"]
    assert (tmp_path / "secret").read_text() == "text\n"
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["secret"]
