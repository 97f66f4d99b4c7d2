"""`recollect` without a word: the local stack, as `uvx "recollect-memory[local]"` asks, where it was installed."""

import sys

import pytest

from recollect_cli import main


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The command line of `recollect`, on a machine without settings, with the extra `local`."""
    monkeypatch.delenv("RECOLLECT_DATABASE_URL", raising=False)
    monkeypatch.setattr(sys, "argv", ["recollect"])
    monkeypatch.setattr(main, "find_spec", lambda name: object())
    return monkeypatch


def test_it_starts_the_local_stack_and_says_so(bare: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main._words() == ["local"]
    assert "recollect --help" in capsys.readouterr().out


def test_a_server_without_the_extra_shows_its_help(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(main, "find_spec", lambda name: None)
    assert main._words() == []


def test_where_a_database_is_configured_nothing_starts_by_itself(bare: pytest.MonkeyPatch) -> None:
    """It would migrate that database."""
    bare.setenv("RECOLLECT_DATABASE_URL", "postgresql://recollect_app@db.internal/recollect")
    assert main._words() == []


def test_words_are_left_as_they_are(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(sys, "argv", ["recollect", "keys", "list"])
    assert main._words() == ["keys", "list"]
